"""Inference with float arrays on any kind of board: zero copy, or RKNN-Toolkit2's simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.errors import HarnessError
from pytest_rknpu.session.layout import Attr, dtype_of, from_memory, to_memory
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.simulator import Note, SimulatorSession, simulated
from pytest_rknpu.session.user_inference import Inputs, as_inputs, native_inputs, simulate_user_model
from pytest_rknpu.session.user_models import UserModel, with_batch
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.models import Model
    from pytest_rknpu.session.npu import LoadedModel, Npu

Floats = npt.NDArray[np.float32]
_BATCH = 64


def simulate(
    session: SimulatorSession,
    model: Model | UserModel,
    inputs: Inputs,
    *,
    sparse_infer: bool | None = None,
    note: Note | None = None,
) -> list[Floats]:
    """All ``inputs`` (N, C, H, W) on the vendor's simulator; per output an (N, ...) array.

    ``sparse_infer`` is that of ``RKNN.config``; None: where a model of boards.toml declares it. Models with
    several inputs take a list of arrays. ``note`` as in ``simulated``. Raises ToolkitError.
    """
    from pytest_rknpu.toolchain import CompileOptions

    platform = session.soc.toolkit_platform
    if isinstance(model, UserModel):
        return simulate_user_model(platform, model, inputs, sparse_infer=sparse_infer, note=note)
    options = CompileOptions(
        target_platform=platform,
        calibration=model.calibration,
        sparse_infer=bool(sparse_infer),
    )
    (samples,) = as_inputs(inputs)
    return simulated(model.float_onnx, options, with_batch([samples]), note)


def infer(
    npu: Npu, model: Model | UserModel, inputs: Inputs, *, sparse_infer: bool | None = None
) -> list[Floats]:
    """All ``inputs`` (N, C, H, W) through zero copy on the board; per output an (N, ...) array.

    The host normalises, quantises and dequantises, with the scale and zero point that the runtime names, in
    batches of one command list each. ``sparse_infer`` as in ``simulate``; the emulator runs the pruned
    weights either way.
    """
    loaded = npu.model(model.name, sparse_infer=sparse_infer)
    tensors = loaded.description.inputs
    arrays = native_inputs(model, inputs)
    if len(tensors) != len(arrays):
        raise HarnessError(
            f"{model.name}: got {len(arrays)} inputs, the model on the board has {len(tensors)}"
        )
    memories = [
        [
            _memory_of(quantise(row[np.newaxis], tensor.native), tensor.native)
            for row, tensor in zip(rows, tensors, strict=True)
        ]
        for rows in zip(*arrays, strict=True)
    ]
    batches = [memories[start : start + _BATCH] for start in range(0, len(memories), _BATCH)]
    raw = [output for batch in batches for output in _run_batch(npu, loaded, batch)]
    per_output = []
    for index, tensor in enumerate(loaded.description.outputs):
        values = [from_memory(output[index], tensor.native, tensor.shape) for output in raw]
        per_output.append(np.concatenate([dequantise(array, tensor.native) for array in values]))
    return per_output


def _memory_of(tensor: npt.NDArray[Any], attr: Attr) -> bytes:
    """The native memory that holds ``tensor``: other than four dimensions lie as they are."""
    return to_memory(tensor, attr) if tensor.ndim == 4 else tensor.tobytes()


def _run_batch(npu: Npu, loaded: LoadedModel, memories: list[list[bytes]]) -> list[list[bytes]]:
    program = Program()
    io = ZeroCopy("inference", loaded)
    io.open(program)
    count = len(loaded.description.outputs)
    for number, sample in enumerate(memories):
        for index, data in enumerate(sample):
            program.write(f"{io.context} input {index}", data)
        program.run(io.context)
        for index in range(count):
            program.read(f"{io.context} output {index}", f"{number} {index}")
    io.close(program)
    values = npu.execute(program)
    return [[values[f"{number} {index}"] for index in range(count)] for number in range(len(memories))]


def quantise(array: Floats, attr: Attr) -> npt.NDArray[Any]:
    """round(x / scale) + zero point, clamped to the attribute's integer type."""
    dtype = dtype_of(attr)
    if dtype.kind == "f":
        return np.asarray(array, dtype)
    limits = np.iinfo(dtype)
    scaled = np.rint(array.astype(np.float64) / attr["scale"]) + attr["zp"]
    return np.asarray(np.clip(scaled, limits.min, limits.max), dtype)


def dequantise(array: npt.NDArray[Any], attr: Attr) -> Floats:
    """(q - zero point) * scale."""
    if array.dtype.kind == "f":
        return np.asarray(array, np.float32)
    return np.asarray((array.astype(np.float64) - attr["zp"]) * attr["scale"], np.float32)
