"""Inference with float arrays on any kind of board: zero copy, or RKNN-Toolkit2's simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.errors import HarnessError
from pytest_rknpu.session.layout import Attr, dtype_of, from_memory
from pytest_rknpu.session.program import Program
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.models import Model
    from pytest_rknpu.session.npu import LoadedModel, Npu
    from pytest_rknpu.session.simulator import SimulatorSession

Floats = npt.NDArray[np.float32]
_BATCH = 64


def simulate(session: SimulatorSession, model: Model, inputs: Floats) -> list[Floats]:
    """All ``inputs`` (N, C, H, W) on the vendor's simulator; per output an (N, ...) array.

    Raises ToolkitError.
    """
    from pytest_rknpu.toolchain import CompileOptions, simulate

    options = CompileOptions(target_platform=session.soc.toolkit_platform, calibration=model.calibration)
    outputs = simulate(model.float_onnx, options, [sample[np.newaxis] for sample in inputs])
    return [np.asarray(output, np.float32) for output in outputs]


def infer(npu: Npu, model: Model, inputs: Floats) -> list[Floats]:
    """All ``inputs`` (N, C, H, W) through zero copy on the board; per output an (N, ...) array.

    The host quantises and dequantises with the scale and zero point that the runtime names, in batches of one
    command list each.
    """
    loaded = npu.model(model.name)
    description = loaded.description
    if len(description.inputs) != 1:
        raise HarnessError(
            f"{model.name}: inference() takes models with one input, not {len(description.inputs)}"
        )
    native = description.inputs[0].native
    memories = [npu.native_input(loaded, quantise(sample[np.newaxis], native)) for sample in inputs]
    batches = [memories[start : start + _BATCH] for start in range(0, len(memories), _BATCH)]
    raw = [output for batch in batches for output in _run_batch(npu, loaded, batch)]
    per_output = []
    for index, tensor in enumerate(description.outputs):
        arrays = [from_memory(values[index], tensor.native, tensor.shape) for values in raw]
        per_output.append(np.concatenate([dequantise(array, tensor.native) for array in arrays]))
    return per_output


def _run_batch(npu: Npu, loaded: LoadedModel, memories: list[bytes]) -> list[list[bytes]]:
    program = Program()
    io = ZeroCopy("inference", loaded)
    io.open(program)
    count = len(loaded.description.outputs)
    for number, data in enumerate(memories):
        program.write(io.input, data)
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
