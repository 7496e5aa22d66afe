"""The head of an .rknn file: for whom and by what it was compiled (VER-03, ERR-01), and what it takes; read
without the toolkit.

Observed with RKNN-Toolkit2 2.2.0 to 2.5.0: ``RKNN`` and four zero bytes, a 64-bit format version at 8, the
length of a flatbuffer at 16, the flatbuffer from 64 on, behind it a 64-bit length and that much JSON text.
All little-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.errors import ModelError

MAGIC = b"RKNN"
_VERSION_AT, _LENGTH_AT, _BODY_AT = 8, 16, 64


@dataclass(frozen=True)
class RknnInput:
    """One input as the file describes it. ``data_type`` ("int8") is None where it is not quantised."""

    name: str
    shape: tuple[int, ...]
    data_type: str | None


@dataclass(frozen=True)
class RknnHeader:
    """``format_version`` is 6 or 0x1004 (RV1103/RV1106 families); ``toolkit_version`` is as in "2.5.0".

    ``inputs`` is empty where the file does not describe them.
    """

    format_version: int
    target_platforms: tuple[str, ...]
    toolkit_version: str
    inputs: tuple[RknnInput, ...] = ()


def read_header(content: bytes) -> RknnHeader:
    """Reads a whole .rknn file. ModelError: another file, truncated, or a description that cannot be read."""
    if len(content) < _BODY_AT:
        raise ModelError(f"no .rknn model: {len(content)} bytes are less than its header of {_BODY_AT}")
    if content[: len(MAGIC)] != MAGIC:
        raise ModelError(f"no .rknn model: it starts with {content[:4]!r} instead of {MAGIC!r}")
    version, length = _number(content, _VERSION_AT), _number(content, _LENGTH_AT)
    description = _description(content, _BODY_AT + length)
    platforms, toolkit = description.get("target_platform"), description.get("version")
    if not isinstance(platforms, list) or not all(isinstance(p, str) for p in platforms) or not platforms:
        raise ModelError(f"the .rknn model names no target_platform (found {platforms!r})")
    if not isinstance(toolkit, str):
        raise ModelError(f"the .rknn model names no toolkit version (found {toolkit!r})")
    return RknnHeader(version, tuple(p.lower() for p in platforms), toolkit, _inputs(description))


def _inputs(description: Mapping[str, Any]) -> tuple[RknnInput, ...]:
    """``graph`` says which of the tensors in ``norm_tensor`` are inputs, and in which order."""
    if "graph" not in description and "norm_tensor" not in description:
        return ()
    try:
        tensors = {tensor["tensor_id"]: tensor for tensor in description["norm_tensor"]}
        places = {
            entry["left_tensor_id"]: entry["right_tensor_id"]
            for entry in description["graph"]
            if entry["left"] == "input"
        }
        if not places or len(places) != description["input_num"]:
            raise ValueError(f"{len(places)} of {description['input_num']} inputs are described")
        return tuple(_input(tensors[places[number]]) for number in sorted(places))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"the .rknn model does not describe its inputs: {error!r}") from None


def _input(tensor: Mapping[str, Any]) -> RknnInput:
    name, shape = tensor["url"], tensor["size"]
    if not isinstance(name, str) or not all(type(size) is int and size > 0 for size in shape):
        raise ValueError(f"input {name!r} of shape {shape!r}")
    quantised = tensor["dtype"]["qnt_type"]
    if not isinstance(quantised, str):
        raise ValueError(f"input {name!r} of type {quantised!r}")
    return RknnInput(name, tuple(shape), quantised or None)


def _number(content: bytes, offset: int) -> int:
    return int(struct.unpack_from("<Q", content, offset)[0])


def _description(content: bytes, offset: int) -> Mapping[str, Any]:
    start = offset + 8
    if start > len(content):
        raise ModelError(
            f"the .rknn model is truncated: it has {len(content)} bytes, its body alone ends at {offset}"
        )
    length = _number(content, offset)
    if start + length > len(content):
        raise ModelError(
            f"the .rknn model is truncated or damaged: it has {len(content)} bytes, its description of "
            f"{length} bytes starts at {start}"
        )
    try:
        # ValueError is the parent of UnicodeDecodeError and JSONDecodeError.
        parsed = json.loads(content[start : start + length].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the .rknn model's description is damaged: {error}") from None
    if not isinstance(parsed, dict):
        raise ModelError("the .rknn model's description is damaged: no JSON object")
    return parsed
