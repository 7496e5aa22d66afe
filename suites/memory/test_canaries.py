"""MEM-04 and MEM-05: the NPU writes all of its outputs, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_MEM_ALLOC_OUTSIDE
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    BIDIRECTIONAL,
    FROM_DEVICE,
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    ZeroCopy,
)
from pytest_rknpu.session.layout import from_memory
from pytest_rknpu.session.zero_copy import bound_attr, significant_bytes

CANARY = 0xC5
ROOM = 4096  # bytes of canary on each side: a page, so that offsets stay aligned


@dataclass(frozen=True)
class Guarded:
    """A memory of ``size`` bytes in the middle of a larger one that is full of canaries."""

    name: str
    size: int

    @property
    def room(self) -> str:
        """Name of the larger memory."""
        return f"{self.name} room"

    def create(self, program: Program, context: str) -> None:
        """Record allocating, filling, handing over and importing."""
        program.create_mem(self.room, context, self.size + 2 * ROOM)
        program.fill(self.room, CANARY)
        program.sync(self.room, TO_DEVICE, context)
        program.import_fd(self.name, context, self.room, self.size, offset=ROOM)

    def check(self, program: Program, context: str) -> None:
        """Record taking the larger memory back and comparing both canaries."""
        program.sync(self.room, FROM_DEVICE, context)
        program.compare(self.room, bytes([CANARY]) * ROOM, f"before {self.name}")
        program.compare(self.room, bytes([CANARY]) * ROOM, f"behind {self.name}", offset=ROOM + self.size)


@pytest.mark.requirement("MEM-04")
@pytest.mark.models("probe_chain", "probe_wide")
def test_canaries_stay_whole(npu: Npu, effort: Effort, named: LoadedModel) -> None:
    """Input, output, internal and weight memory lie between canaries; the runs change no weights."""
    model, description, context = named, named.description, "a"
    memories = {
        "input": Guarded("input", description.inputs[0].native_size),
        "output": Guarded("output", description.outputs[0].native_size),
        "internal": Guarded("internal", description.internal_size),
        "weights": Guarded("weights", description.weight_size),
    }
    data, mask = npu.random_inputs(model, 1)[0], significant_bytes(description.outputs[0])
    program = Program()
    program.init(context, model.sha256, flags=RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    for memory in memories.values():
        memory.create(program, context)
    program.bind_weights(context, "weights")
    program.bind_internal(context, "internal")
    program.bind(context, "input", bound_attr(description.inputs[0].native, "input"))
    program.bind(context, "output", bound_attr(description.outputs[0].native, "output"))
    # Memory from outside is the application's to sync: the library fills the weights on the CPU (MEM-14), and
    # whether rknn_run maintains imported memory is open. The whole rooms are synced, for the canaries too.
    program.sync(memories["weights"].room, TO_DEVICE, context)
    program.read("weights", "weights before")
    with program.repeat(effort.rounds(10)):
        program.write("input", data)
        program.sync(memories["input"].room, TO_DEVICE, context)
        program.run(context)
        program.sync(memories["output"].room, FROM_DEVICE, context)
        program.compare("output", npu.reference(model, [data])[0], "result", mask=mask)
    for memory in memories.values():
        memory.check(program, context)
    program.read("weights", "weights after")
    values = npu.execute(program)
    for saved, compared in values.items():
        if saved.startswith(("before ", "behind ")):
            npu.require_same(compared, f"canary {saved}")
    npu.require_equal(values["weights before"], values["weights after"], "the runs changed the weight memory")
    npu.require_same(values["result"], "with all memory from outside the result differs")


@pytest.mark.requirement("MEM-05")
@pytest.mark.models("probe_pointwise", "probe_chain", "probe_wide", "digits_cnn")
def test_outputs_are_fully_written(npu: Npu, named: LoadedModel) -> None:
    """Prefills 0xA5 and 0x5A end in the same bytes; padding is excluded."""
    model = named
    data = npu.random_inputs(model, 1)[0]
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    program = Program()
    io.open(program)
    program.write(io.input, data)
    program.sync(io.input, TO_DEVICE, io.context)
    for prefill in (0xA5, 0x5A):
        program.fill(io.output, prefill)
        program.sync(io.output, TO_DEVICE, io.context)
        program.run(io.context)
        program.sync(io.output, BIDIRECTIONAL, io.context)
        program.read(io.output, f"{prefill:#x}")
    values = npu.execute(program)
    output = model.description.outputs[0]
    first, second = (from_memory(values[saved], output.native, output.shape) for saved in ("0xa5", "0x5a"))
    unwritten = np.argwhere(first != second)
    if len(unwritten):
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {len(unwritten)} of {first.size} output elements keep what "
            f"was there before the run; first at index {tuple(int(i) for i in unwritten[0])}"
        )
    npu.require_equal(
        from_memory(npu.reference(model, [data])[0], output.native, output.shape).tobytes(),
        first.tobytes(),
        "the output written over a prefill differs from the reference",
    )
