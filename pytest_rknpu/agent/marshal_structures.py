"""Between the plain data of a program and the C structures of the runtime."""

from __future__ import annotations

import ctypes
from typing import Any

from .constants import RKNN_MAX_DIMS, QueryCommand
from .failures import ProgramFailure
from .state import address_of
from .structures import Layouts

MAXIMUM_PERF_REPORT = 16 * 2**20

_ATTRIBUTE = "rknn_tensor_attr"

QUERY_STRUCTURES: dict[QueryCommand, str] = {
    QueryCommand.RKNN_QUERY_IN_OUT_NUM: "rknn_input_output_num",
    QueryCommand.RKNN_QUERY_INPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_OUTPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_PERF_DETAIL: "rknn_perf_detail",
    QueryCommand.RKNN_QUERY_PERF_RUN: "rknn_perf_run",
    QueryCommand.RKNN_QUERY_SDK_VERSION: "rknn_sdk_version",
    QueryCommand.RKNN_QUERY_MEM_SIZE: "rknn_mem_size",
    QueryCommand.RKNN_QUERY_CUSTOM_STRING: "rknn_custom_string",
    QueryCommand.RKNN_QUERY_NATIVE_INPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_NATIVE_OUTPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_DEVICE_MEM_INFO: "rknn_tensor_mem",
    QueryCommand.RKNN_QUERY_INPUT_DYNAMIC_RANGE: "rknn_input_range",
    QueryCommand.RKNN_QUERY_CURRENT_INPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_CURRENT_OUTPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR: _ATTRIBUTE,
    QueryCommand.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR: _ATTRIBUTE,
}
"""The structure that each query command fills."""


def from_structure(info: Any, follow: bool = True) -> dict[str, Any]:
    """A structure as a dict by the header's field names.

    Char arrays become str (up to the first NUL), arrays become lists, ``dims`` is cut to ``n_dims`` and
    ``dyn_range`` to ``shape_number`` rows of ``n_dims``. With ``follow``, ``perf_data`` becomes the text that
    it points to.
    """
    fields = {entry[0]: _plain(getattr(info, entry[0])) for entry in info._fields_}
    if "dims" in fields:
        fields["dims"] = fields["dims"][: fields["n_dims"]]
    if "dyn_range" in fields:
        fields["dyn_range"] = [
            row[: fields["n_dims"]] for row in fields["dyn_range"][: fields["shape_number"]]
        ]
    if "perf_data" in fields:
        length = min(fields["data_len"], MAXIMUM_PERF_REPORT)
        pointer = fields["perf_data"] if follow else 0
        raw = ctypes.string_at(pointer, length) if pointer and length else b""
        fields["perf_data"] = raw.split(b"\0")[0].decode("utf-8", "replace")
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, ctypes.Array):
        return [_plain(entry) for entry in value]
    return value


def tensor_attribute(structures: Layouts, attribute: Any) -> Any:
    """A ``rknn_tensor_attr`` from a dict; missing fields are zero, ``code`` is ignored, others refused."""
    if not isinstance(attribute, dict):
        raise ProgramFailure("key 'attr': expected a dict as from query")
    structure = structures[_ATTRIBUTE]
    kinds = dict(structure._fields_)
    unknown = sorted(repr(key) for key in attribute if key not in kinds and key != "code")
    if unknown:
        raise ProgramFailure(f"key 'attr': rknn_tensor_attr has no field {', '.join(unknown)}")
    filled = structure()
    for key, value in attribute.items():
        if key != "code":
            try:
                setattr(filled, key, _c_value(kinds[key], value))
            except (TypeError, ValueError, OverflowError, UnicodeError) as error:
                raise ProgramFailure(f"key 'attr': field {key!r}: {error}") from None
    return filled


def _c_value(kind: Any, value: Any) -> Any:
    if kind is ctypes.c_float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError("expected a number")
        return float(value)
    if issubclass(kind, ctypes.Array) and kind._type_ is ctypes.c_char:
        raw = value.encode() if isinstance(value, str) else None
        if raw is None or len(raw) >= kind._length_ or b"\0" in raw:
            raise ValueError(f"expected a string of fewer than {kind._length_} bytes without NUL")
        return raw
    if issubclass(kind, ctypes.Array):
        if not isinstance(value, list) or len(value) > RKNN_MAX_DIMS:
            raise ValueError(f"expected a list of at most {RKNN_MAX_DIMS} integers")
        return kind(*(_c_value(kind._type_, entry) for entry in value))
    if isinstance(value, bool) or not isinstance(value, int) or kind(value).value != value:
        raise ValueError(f"{value!r} does not fit {kind.__name__}")
    return value


def input_array(structures: Layouts, inputs: list[dict[str, Any]]) -> Any:
    """An array of ``rknn_input`` that points at the blobs; the caller keeps those alive."""
    array = (structures["rknn_input"] * len(inputs))()
    for entry, given in zip(array, inputs):
        entry.index, entry.type, entry.fmt = given["index"], given["type"], given["fmt"]
        entry.buf, entry.size = address_of(given["data"]), len(given["data"])
        entry.pass_through = given["pass_through"]
    return array


def output_array(structures: Layouts, outputs: list[dict[str, Any]]) -> Any:
    """An array of ``rknn_output`` that asks for buffers of the library's own."""
    array = (structures["rknn_output"] * len(outputs))()
    for entry, given in zip(array, outputs):
        entry.index, entry.want_float = given["index"], given["want_float"]
    return array
