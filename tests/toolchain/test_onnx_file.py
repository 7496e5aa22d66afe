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


def test_a_constant_that_lacks_bytes_is_refused() -> None:
    """onnx's checker does not count them; RKNN-Toolkit2 builds all the same."""
    model = onnx.load_model_from_string(MODEL)
    weights = model.graph.initializer[0]
    weights.raw_data = weights.raw_data[:-4]
    with pytest.raises(ModelError, match=rf"is damaged: constant '{weights.name}': cannot reshape"):
        read_onnx(model.SerializeToString())


@pytest.mark.parametrize("part", ["node", "output"])
def test_a_graph_that_computes_nothing_is_refused(part: str) -> None:
    """RKNN-Toolkit2 says of the one "argument of type 'NoneType' is not iterable", of the other nothing."""
    model = onnx.load_model_from_string(MODEL)
    kept = model.graph.input[0]
    del getattr(model.graph, part)[:]
    if part == "node":
        del model.graph.output[:]
        model.graph.output.append(kept)
    with pytest.raises(ModelError, match=f"computes nothing: its graph has no {part}s"):
        read_onnx(model.SerializeToString())


def outside(folder: Path, location: str = "w.bin") -> Path:
    """The model with its weights in a file of their own, whose name is then written anew."""
    model = onnx.load_model_from_string(MODEL)
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    model = onnx.load(folder / "m.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = location
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def test_weights_in_another_file_are_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the working directory, by which onnx's checker finds them."""
    file = outside(tmp_path)
    monkeypatch.chdir("/")
    assert read_onnx(read_onnx(file)) == read_onnx(file)
    with pytest.raises(ModelError, match=r"keeps weights in other files \(w\.bin\), which bytes alone"):
        read_onnx(file.read_bytes())


@pytest.mark.parametrize("location", ["gone.bin", "../w.bin", "/etc/hostname", "a\0b"])
def test_weights_that_cannot_be_taken_in(tmp_path: Path, location: str) -> None:
    """Nothing outside the model's folder is read."""
    (tmp_path / "inside").mkdir()
    file = outside(tmp_path / "inside", location)
    (tmp_path / "w.bin").write_bytes(bytes(10_000))
    with pytest.raises(ModelError, match="put them beside it, or save it as one file"):
        read_onnx(file)


def test_a_file_of_weights_that_ends_too_soon(tmp_path: Path) -> None:
    file = outside(tmp_path)
    (tmp_path / "w.bin").write_bytes((tmp_path / "w.bin").read_bytes()[:-5])
    with pytest.raises(ModelError, match=r"m\.onnx is (damaged|not valid)"):
        read_onnx(file)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ModelError):
        read_onnx(content)
