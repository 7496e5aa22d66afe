"""VER-06's judgement, on an emulated board that is handed packed containers in the stored files' stead."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from suite_modules import suite

from pytest_rknpu import models, prebuilt
from pytest_rknpu.emulator import pack
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.session import Npu
from pytest_rknpu.session.pictures import infer_pictures

SUITE = suite("versions/test_stored_models.py")
STORED = prebuilt.load("probe_pointwise", "rk3588")


def container(qdq_onnx: bytes) -> prebuilt.Prebuilt:
    return replace(STORED, content=pack(qdq_onnx, "rk3588"))


def test_a_model_that_computes_the_same_passes(npu: Npu) -> None:
    SUITE.judge(npu, container(models.load("probe_pointwise").qdq_onnx))
    assert any("RKNN-Toolkit2 2.5.0" in note for note in npu.record.notes)


def test_a_model_that_computes_something_else_fails(npu: Npu) -> None:
    """One weight of the stored model has another sign."""
    graph = onnx.load_model_from_string(models.load("probe_pointwise").qdq_onnx)
    weight = next(t for t in graph.graph.initializer if numpy_helper.to_array(t).ndim == 4)
    values = numpy_helper.to_array(weight).copy()
    values.reshape(-1)[np.flatnonzero(values)[0]] *= -1
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    with pytest.raises(ConformanceFailure, match=r"the model of RKNN-Toolkit2 2\.5\.0: .*bytes differ"):
        SUITE.judge(npu, container(graph.SerializeToString()))


@pytest.mark.parametrize(
    ("board", "version", "proof"),
    [
        (Board(name="e", soc="rk3588", runtime="emulator"), "2.2.0", r"is emulated: .*b'RKEM'.*b'RKNN'"),
        (Board(name="s", soc="rk3588", runtime="simulator"), "2.3.2", "runs only what it built itself"),
        (Board(name="s", soc="rv1126b", runtime="simulator"), "2.2.0", "did not build for rv1126b"),
    ],
)
def test_the_proof_of_a_skip(board: Board, version: str, proof: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=proof):
        SUITE.stored_model(SimpleNamespace(board=board), version)


def test_a_board_gets_the_stored_file() -> None:
    board = Board(name="lab", soc="rv1106", host="192.0.2.7")
    found = SUITE.stored_model(SimpleNamespace(board=board), "2.3.0")
    assert (found.platform, found.toolkit_version) == ("rv1106", "2.3.0")


def test_pictures_are_quantised_by_the_board(npu: Npu) -> None:
    """Bytes as uint8 NHWC, not passed through: as if the host had quantised them."""
    model = npu.model("probe_stride")
    pixels = np.random.default_rng(2).integers(0, 3, (3, 3, 20, 20)).astype(np.uint8)
    outputs = infer_pictures(npu, model, pixels)
    expected = run_onnx(models.load("probe_stride").qdq_onnx, pixels.astype(np.float32))
    assert np.array_equal(outputs[0], expected[0])
