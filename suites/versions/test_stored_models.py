"""VER-06: models that older toolkits built still load and compute the same bytes on this board's runtime."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import pytest

from pytest_rknpu import models, prebuilt
from pytest_rknpu.errors import ModelError
from pytest_rknpu.fixtures import LiveBoard
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.session import LoadedModel, Npu, Program, ZeroCopy
from pytest_rknpu.session.inference import dequantise, quantise
from pytest_rknpu.session.layout import from_memory

MODEL = "probe_pointwise"
VERSIONS = ["2.2.0", "2.3.0", "2.3.2", "2.5.0"]


@pytest.mark.requirement("VER-06")
@pytest.mark.needs("arithmetic")
@pytest.mark.parametrize("version", VERSIONS)
def test_stored_model_computes_the_same_bytes(
    board: LiveBoard, request: pytest.FixtureRequest, version: str
) -> None:
    """One model, exactly computable, by each toolkit version: each must give what the QDQ model gives."""
    stored = stored_model(board, version)
    judge(request.getfixturevalue("npu"), stored)


def judge(npu: Npu, stored: prebuilt.Prebuilt) -> None:
    """ConformanceFailure: another output than the QDQ model's, byte for byte."""
    version = stored.toolkit_version
    loaded = npu.load(MODEL, stored.content)
    source, result = loaded.description.inputs[0], loaded.description.outputs[0]
    tensors = [npu.random_tensor(loaded) for _ in range(4)]
    values = npu.execute(run_each(loaded, [npu.native_input(loaded, tensor) for tensor in tensors]))
    npu.record.note(f"built by RKNN-Toolkit2 {version}, sha256 {stored.sha256[:16]}")
    for number, tensor in enumerate(tensors):
        real = run_onnx(models.load(MODEL).qdq_onnx, dequantise(tensor, source.native))[0]
        actual = from_memory(values[str(number)], result.native, result.shape)
        expected = np.asarray(quantise(real, result.native), actual.dtype)
        npu.require_equal(expected.tobytes(), actual.tobytes(), f"the model of RKNN-Toolkit2 {version}")


def stored_model(board: LiveBoard, version: str) -> prebuilt.Prebuilt:
    """The stored file. Skips with the proof where there is none, or where this board cannot load it."""
    try:
        stored = prebuilt.load(MODEL, board.board.platform, version)
    except ModelError as error:
        skip(f"RKNN-Toolkit2 {version} did not build for {board.board.platform}: {error}")
    if board.board.runtime == "simulator":
        skip(
            f"{board.board.name}: RKNN-Toolkit2's simulator runs only what it built itself; after "
            "load_rknn() its init_runtime() returns -1"
        )
    if board.board.runtime == "connected":
        skip(f"{board.board.name}: its runtime is reached through the toolkit, which hands out no bytes")
    if board.board.runtime == "emulator":
        skip(
            f"{board.board.name} is emulated: it loads containers that start with b'RKEM', this .rknn file "
            f"starts with {stored.content[:4]!r}"
        )
    return stored


def skip(proof: str) -> NoReturn:
    """As pytest.skip, which type checkers do not always know to raise."""
    pytest.skip(proof)


def run_each(loaded: LoadedModel, inputs: list[bytes]) -> Program:
    """One run for each input (native bytes), its output saved under its number."""
    program = Program()
    io = ZeroCopy("stored", loaded)
    io.open(program)
    for number, data in enumerate(inputs):
        program.write(io.input, data)
        program.run(io.context)
        program.read(io.output, str(number))
    io.close(program)
    return program
