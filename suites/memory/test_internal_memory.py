"""MEM-01 to MEM-03: sizes that are reported, and internal buffers given from outside (guide, zero copy)."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE, rknn_query_cmd
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import BIDIRECTIONAL, TO_DEVICE, LoadedModel, Npu, Program, ZeroCopy

CANARY = 0xC5
POISON = 0xEE


@pytest.mark.requirement("MEM-01")
def test_reported_sizes_are_plausible(npu: Npu, chain: LoadedModel, wide: LoadedModel) -> None:
    """RKNN_QUERY_MEM_SIZE: sizes are there, the larger network's internal memory is larger, sums hold."""
    program = Program()
    for loaded in (chain, wide):
        program.init(loaded.name, loaded.sha256)
        program.query(loaded.name, rknn_query_cmd.RKNN_QUERY_MEM_SIZE, loaded.name)
        program.destroy(loaded.name)
    values = npu.execute(program)
    for loaded in (chain, wide):
        for key in (
            "total_weight_size",
            "total_internal_size",
            "total_dma_allocated_size",
            "total_sram_size",
        ):
            npu.record.measure(f"{loaded.name} {key}", values[loaded.name][key], "B")
    for loaded in (chain, wide):
        sizes = values[loaded.name]
        least = int(sizes["total_weight_size"]) + int(sizes["total_internal_size"])
        problems = [key for key in ("total_weight_size", "total_internal_size") if sizes[key] <= 0]
        if 0 < sizes["total_dma_allocated_size"] < least:
            problems.append("total_dma_allocated_size (less than weights and internal memory together)")
        if sizes["free_sram_size"] > sizes["total_sram_size"] > 0:
            problems.append("free_sram_size (more than there is)")
        if problems:
            raise ConformanceFailure(f"{loaded.name}: implausible {', '.join(problems)}: {sizes}")
    if values[wide.name]["total_internal_size"] <= values[chain.name]["total_internal_size"]:
        raise ConformanceFailure(f"the larger network does not report more internal memory: {values}")


@pytest.mark.requirement("MEM-02")
def test_two_models_take_turns_on_one_internal_buffer(
    npu: Npu, chain: LoadedModel, wide: LoadedModel, effort: Effort
) -> None:
    """A, poison, B, poison, A on one buffer of the larger size equal their isolated runs."""
    runs = [ZeroCopy(loaded.name, loaded, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE) for loaded in (chain, wide)]
    inputs = {io.context: npu.random_inputs(io.model, 2) for io in runs}
    expected = {io.context: npu.reference(io.model, inputs[io.context]) for io in runs}
    program = Program()
    largest = max(io.model.description.internal_size for io in runs)
    for io in runs:
        program.init(io.context, io.model.sha256, flags=io.flags)
    program.create_mem("internal", runs[0].context, largest)
    for io in runs:
        program.import_fd(
            f"{io.context} internal", io.context, "internal", io.model.description.internal_size
        )
        program.bind_internal(io.context, f"{io.context} internal")
        io.bind(program)
    with program.repeat(effort.rounds(20)):
        for io in runs:
            program.fill("internal", POISON)
            program.sync("internal", TO_DEVICE, io.context)
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
