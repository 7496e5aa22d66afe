"""MEM-01 to MEM-03: sizes that are reported, and internal buffers given from outside (guide, zero copy)."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE
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

CANARY = 0xC5
POISON = 0xEE


@pytest.mark.requirement("MEM-01")
def test_reported_sizes_are_plausible(npu: Npu, chain: LoadedModel, wide: LoadedModel) -> None:
    """RKNN_QUERY_MEM_SIZE: sizes are there, the larger network's internal memory is larger, sums hold."""
    sizes = {loaded.name: npu.session.memory_sizes(loaded.sha256) for loaded in (chain, wide)}
    for name, size in sizes.items():
        npu.record.measure(f"{name} total_weight_size", size.weight, "B")
        npu.record.measure(f"{name} total_internal_size", size.internal, "B")
        npu.record.measure(f"{name} total_dma_allocated_size", size.dma, "B")
        npu.record.measure(f"{name} total_sram_size", size.sram, "B")
    for name, size in sizes.items():
        problems = []
        if size.weight <= 0 or size.internal <= 0:
            problems.append("there are no weights or no internal memory")
        # A context that waits for memory from outside has allocated none.
        if not size.from_outside and 0 < size.dma < size.weight + size.internal:
            problems.append("the DMA bytes are fewer than weights and internal memory together")
        if size.free_sram > size.sram > 0:
            problems.append("more SRAM is free than there is")
        if problems:
            raise ConformanceFailure(f"{name}: {'; '.join(problems)}: {size}")
    # By the compiler's own tables probe_wide needs about ten times as much, on every SoC.
    if sizes[wide.name].internal <= sizes[chain.name].internal:
        raise ConformanceFailure(f"the larger network does not report more internal memory: {sizes}")


@pytest.mark.requirement("MEM-02")
def test_two_models_take_turns_on_one_internal_buffer(
    npu: Npu, chain: LoadedModel, wide: LoadedModel, effort: Effort
) -> None:
    """A, poison, B, poison, A on one buffer of the larger size equal their isolated runs.

    Without rknn_mem_sync there is no way to hand poison over: A and B are each other's.
    """
    runs = [ZeroCopy(loaded.name, loaded, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE) for loaded in (chain, wide)]
    inputs = {io.context: npu.random_inputs(io.model, 2) for io in runs}
    expected = {io.context: npu.reference(io.model, inputs[io.context]) for io in runs}
    program = Program()
    largest, owner = max(io.model.description.internal_size for io in runs), runs[0].context
    for io in runs:
        program.init(io.context, io.model.sha256, flags=io.flags)
    program.create_mem("internal", owner, largest)
    for io in runs:
        program.import_fd(
            f"{io.context} internal", io.context, "internal", io.model.description.internal_size
        )
        program.bind_internal(io.context, f"{io.context} internal")
        io.bind(program)
    with program.repeat(effort.rounds(20)):
        for io in runs:
            if npu.can_sync:
                program.sync("internal", FROM_DEVICE, owner)  # or stale lines could come back later
                program.fill("internal", POISON)
                program.sync("internal", TO_DEVICE, owner)
            program.write_cycle(io.input, inputs[io.context])
            program.run(io.context)
            io.compare_output(program, expected[io.context], io.context)
    values = npu.execute(program)
    for io in runs:
        npu.require_same(
            values[io.context], f"{io.context} on a shared internal buffer differs from its isolated run"
        )
    npu.record.measure("shared internal buffer", largest, "B")


@pytest.mark.requirement("MEM-03")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("share", ["minus-one-line", "half", "one-line"])
def test_too_small_internal_buffer(npu: Npu, wide: LoadedModel, share: str) -> None:
    """Refused, or it makes no difference; never an overrun or a wrong result without an error."""
    needed = wide.description.internal_size
    size = {"minus-one-line": needed - 64, "half": needed // 2 // 64 * 64, "one-line": 64}[share]
    data = npu.random_inputs(wide, 1)[0]
    io = ZeroCopy("a", wide, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
    program = Program()
    program.init(io.context, wide.sha256, flags=io.flags)
    program.create_mem("room", io.context, needed + 4096)
    program.fill("room", CANARY)
    program.sync("room", TO_DEVICE, io.context)
    program.import_fd("small", io.context, "room", size)
    program.bind_internal(io.context, "small", expect="any", save="bound")
    code = npu.execute(program)["bound"]
    npu.record.measure("code of rknn_set_internal_mem", code)
    if code != 0:
        return
    program = Program()
    io.bind(program)
    program.write(io.input, data)
    program.run(io.context, expect="any", save="ran")
    program.sync("room", BIDIRECTIONAL, io.context)
    program.compare("room", bytes([CANARY]) * (needed + 4096 - size), "canary", offset=size)
    io.compare_output(program, [npu.reference(wide, [data])[0]], "output")
    values = npu.execute(program)
    npu.require_same(values["canary"], f"{size} of {needed} B were accepted and the run wrote behind them")
    if values["ran"] == 0:
        npu.require_same(
            values["output"], f"{size} of {needed} B were accepted and the run gave a wrong result"
        )
    npu.record.note(
        f"{size} of {needed} B were accepted; the run returned {values['ran']}, nothing was overrun"
    )
