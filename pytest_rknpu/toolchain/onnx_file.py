"""An ONNX model is checked before the toolkit sees it, so that the file's faults are not the toolkit's."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]

from pytest_rknpu.errors import ModelError


def read_onnx(source: bytes | Path) -> bytes:
    """The bytes of an ONNX model, given as bytes or as a file.

    ModelError: the file is missing or unreadable, the bytes are no ONNX model, truncated, or not valid.
    """
    if isinstance(source, bytes):
        return _checked(source, "the ONNX model")
    try:
        content = source.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the ONNX model {source}: {error.strerror}") from error
    return _checked(content, f"the ONNX model {source}")


def _checked(content: bytes, name: str) -> bytes:
    if not content:
        raise ModelError(f"{name} is empty")
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError as error:
        raise ModelError(f"{name} is no ONNX file, or truncated ({len(content)} bytes): {error}") from error
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ModelError(f"{name} is not valid: {reason}") from error
    return content
