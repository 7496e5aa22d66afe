"""ONNX models are refused before the toolkit starts."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu import models
from pytest_rknpu.errors import ModelError
from pytest_rknpu.toolchain.onnx_file import read_onnx

MODEL = models.load("probe_pointwise").float_onnx


def test_a_right_model_from_bytes_and_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(MODEL)
    assert read_onnx(MODEL) == read_onnx(tmp_path / "m.onnx") == MODEL


def test_every_truncation_is_refused() -> None:
    for length in range(len(MODEL)):
        with pytest.raises(ModelError):
            read_onnx(MODEL[:length])


def test_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x0a\xff")
    with pytest.raises(ModelError, match=r"m\.onnx is no ONNX file, or truncated \(2 bytes\)"):
        read_onnx(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"cannot read the ONNX model .*: Is a directory"):
        read_onnx(tmp_path)
    with pytest.raises(ModelError, match="is empty"):
        read_onnx(b"")


def test_an_invalid_graph_says_why() -> None:
    model = onnx.load_model_from_string(MODEL)
    model.graph.node[0].input[0] = "nowhere"
    with pytest.raises(ModelError, match=r"is not valid: .*nowhere"):
        read_onnx(model.SerializeToString())


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        read_onnx(content)
