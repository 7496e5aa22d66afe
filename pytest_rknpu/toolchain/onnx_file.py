"""An ONNX model is checked before the toolkit sees it, so that the file's faults are not the toolkit's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError  # type: ignore[import-untyped,unused-ignore]
from onnx import numpy_helper
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from pytest_rknpu.errors import ModelError


def read_onnx(source: bytes | Path) -> bytes:
    """The bytes of an ONNX model, given as bytes or as a file. Weights that a file keeps in others beside it
    are taken in, so that the bytes stand for themselves.

    ModelError: the file is missing or unreadable, the bytes are no ONNX model, truncated, or not valid; it
    computes nothing, or its weights lie elsewhere and cannot be read.
    """
    if isinstance(source, bytes):
        return _checked(source, "the ONNX model", None)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the ONNX model {source}: {error.strerror}") from error
    return _checked(content, f"the ONNX model {source}", source.parent)


def _checked(content: bytes, name: str, folder: Path | None) -> bytes:
    if not content:
        raise ModelError(f"{name} is empty")
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError as error:
        raise ModelError(f"{name} is no ONNX file, or truncated ({len(content)} bytes): {error}") from error
    outside = sorted(set(_files_outside(model)))
    if outside:
        content = _whole(model, name, folder, outside)
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"{name} is not valid: {reason}") from error
    for part in ("node", "output"):
        if not getattr(model.graph, part):
            raise ModelError(f"{name} computes nothing: its graph has no {part}s")
    for tensor in model.graph.initializer:
        _require_whole(tensor, name)
    return content


def _require_whole(tensor: onnx.TensorProto, name: str) -> None:
    """The checker does not count the bytes of a constant; the toolkit reads on behind them."""
    try:
        numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{name} is damaged: constant {tensor.name!r}: {error}") from error


def _files_outside(model: onnx.ModelProto) -> Iterator[str]:
    """The names of the files that hold weights of the graph."""
    for tensor in model.graph.initializer:
        if uses_external_data(tensor):
            yield next((entry.value for entry in tensor.external_data if entry.key == "location"), "?")


def _whole(model: onnx.ModelProto, name: str, folder: Path | None, outside: list[str]) -> bytes:
    """The model with the weights taken in. A toolkit that is given the one file builds from garbage."""
    words = f"{name} keeps weights in other files ({', '.join(outside)})"
    if folder is None:
        raise ModelError(f"{words}, which bytes alone do not give: save it as one file")
    try:
        load_external_data_for_model(model, str(folder))
        return bytes(model.SerializeToString(deterministic=True))
    except (OSError, ValueError, EncodeError, onnx.checker.ValidationError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(
            f"{words}, which cannot be taken in ({reason}): put them beside it, or save it as one file"
        ) from error
