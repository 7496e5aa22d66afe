"""ACC-04: each core mask gives the bytes that core 0 gives, on whole networks."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import rknn_core_mask
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import FROM_DEVICE, TO_DEVICE, Npu, Program, ZeroCopy

CORE_0 = "RKNN_NPU_CORE_0"
BACKGROUND = 0x5C
SAMPLES = 4


@pytest.mark.requirement("ACC-04")
@pytest.mark.needs("several_cores")
@pytest.mark.models("digits_cnn", "probe_chain", "probe_wide")
def test_each_core_mask_equals_core_0(npu: Npu, model_name: str, effort: Effort) -> None:
    """Random inputs, the same for each mask; the output is spoiled before each run."""
    npu.require_function("rknn_set_core_mask")
    model = npu.model(model_name)
    inputs = [npu.random_inputs(model, 1)[0] for _ in range(effort.rounds(SAMPLES))]
    expected = _outputs(npu, ZeroCopy("core 0", model), inputs)
    for mask in npu.core_masks:
        if mask == CORE_0:
            continue
        io = ZeroCopy("a", model)
        program = Program()
        io.open(program)
        program.set_core_mask(io.context, rknn_core_mask[mask])
        with program.repeat(len(inputs)):
            _run_once(npu, program, io, inputs)
            io.compare_output(program, expected, mask)
        io.close(program)
        npu.require_same(npu.execute(program)[mask], f"{model.name} with {mask}, against {CORE_0}")
    npu.record.measure("core masks", len(npu.core_masks))
    npu.record.measure("samples", len(inputs))


def _run_once(npu: Npu, program: Program, io: ZeroCopy, inputs: list[bytes]) -> None:
    program.write_cycle(io.input, inputs)
    if not npu.can_sync:  # rknn_run alone must do
        program.run(io.context)
        return
    program.fill(io.output, BACKGROUND)
    program.sync(io.output, TO_DEVICE, io.context)
    program.sync(io.input, TO_DEVICE, io.context)
    program.run(io.context)
    program.sync(io.output, FROM_DEVICE, io.context)


def _outputs(npu: Npu, io: ZeroCopy, inputs: list[bytes]) -> list[bytes]:
    """What core 0 makes of each input."""
    program = Program()
    io.open(program)
    program.set_core_mask(io.context, rknn_core_mask[CORE_0])
    for number, data in enumerate(inputs):
        _run_once(npu, program, io, [data])
        program.read(io.output, f"sample {number}")
    io.close(program)
    values = npu.execute(program)
    return [values[f"sample {number}"] for number in range(len(inputs))]
