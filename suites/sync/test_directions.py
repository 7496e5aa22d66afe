"""SYNC-01 to 04, 10, 12, 14: each direction of rknn_mem_sync does what its name says (guide 4.1.6)."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    BIDIRECTIONAL,
    CACHEABLE,
    FROM_DEVICE,
    NON_CACHEABLE,
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    Sensitivity,
    ZeroCopy,
    code_name,
    require_run_matters,
    require_sensitive,
    require_survived,
)
from pytest_rknpu.session.hand_over import hand_overs
from pytest_rknpu.session.zero_copy import bound_attr, require_feeds_itself

ALLOCATIONS = [pytest.param(None, id="create_mem"), pytest.param(CACHEABLE, id="create_mem2-cacheable")]
# Buffers of 4 KiB each way; 4 KiB in, another size out; rows that are longer than the width.
MODELS = pytest.mark.parametrize("model", ["probe_pointwise", "probe_wide", "probe_stride"], indirect=True)
PATTERNS = 4
LINE = 64  # bytes of a cache line


@pytest.mark.requirement("SYNC-01")
@MODELS
@pytest.mark.parametrize("alloc_flags", ALLOCATIONS)
def test_to_device_publishes_what_the_cpu_wrote(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort, alloc_flags: int | None
) -> None:
    """A new pattern over an old, synced one reaches the NPU. The output, not judged, goes BIDIRECTIONAL."""
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, flags=npu.application_syncs, alloc_flags=alloc_flags)
    rounds = effort.rounds(300)
    compared = hand_overs(npu, io, patterns, rounds, to_npu=TO_DEVICE, to_cpu=BIDIRECTIONAL)
    npu.require_same(compared, "after TO_DEVICE the NPU did not read the new bytes")
    npu.record_bound(rounds)
    require_sensitive(sensitivity.to_device, "TO_DEVICE")


@pytest.mark.requirement("SYNC-02")
@MODELS
@pytest.mark.parametrize("alloc_flags", ALLOCATIONS)
def test_from_device_shows_what_the_npu_wrote(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort, alloc_flags: int | None
) -> None:
    """The CPU holds the old result in its cache. The input goes by BIDIRECTIONAL: not judged here."""
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, flags=npu.application_syncs, alloc_flags=alloc_flags)
    rounds = effort.rounds(300)
    compared = hand_overs(npu, io, patterns, rounds, to_npu=BIDIRECTIONAL, to_cpu=FROM_DEVICE)
    npu.require_same(compared, "after FROM_DEVICE the CPU did not read the new bytes")
    npu.record_bound(rounds)
    require_sensitive(sensitivity.from_device, "FROM_DEVICE")


@pytest.mark.requirement("SYNC-03")
def test_bidirectional_does_both(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """One memory is A's output and B's input; the CPU reads it, edits part of a line, B must see it all."""
    patterns = npu.random_inputs(model, PATTERNS)
    between = npu.reference(model, patterns)
    edit, offset = bytes(npu.random.bytes(LINE // 2)), 5 * LINE + LINE // 4
    edited = [data[:offset] + edit + data[offset + len(edit) :] for data in between]
    require_feeds_itself(model)
    first, second = (ZeroCopy(name, model, flags=npu.application_syncs) for name in "ab")
    program = Program()
    first.open(program)
    second.open(program)
    # Memory belongs to a context; another one imports it (as the SDK's sample for internal memory does).
    program.import_fd("shared", second.context, first.output, first.output_size)
    program.bind(second.context, "shared", bound_attr(model.description.inputs[0].native, "input"))
    rounds = effort.rounds(100)
    with program.repeat(rounds):
        program.write_cycle(first.input, patterns)
        program.sync(first.input, BIDIRECTIONAL, first.context)
        program.run(first.context)
        program.sync(first.output, BIDIRECTIONAL, first.context)
        first.compare_output(program, between, "between")
        program.write(first.output, edit, offset=offset)
        program.sync(first.output, BIDIRECTIONAL, first.context)
        program.run(second.context)
        program.sync(second.output, BIDIRECTIONAL, second.context)
        second.compare_output(program, npu.reference(model, edited), "end")
    program.destroy_mem("shared", second.context)
    second.close(program)
    first.close(program)
    values = npu.execute(program)
    npu.require_same(values["between"], "after BIDIRECTIONAL the CPU did not read A's result")
    npu.require_same(values["end"], "after BIDIRECTIONAL the NPU did not read the CPU's edit of A's result")
    npu.record_bound(rounds)
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "BIDIRECTIONAL")


@pytest.mark.requirement("SYNC-04")
@MODELS
@pytest.mark.parametrize("alloc_flags", ALLOCATIONS)
def test_run_alone_keeps_inputs_and_outputs_consistent(
    npu: Npu, model: LoadedModel, effort: Effort, alloc_flags: int | None
) -> None:
    """Without the DISABLE_FLUSH flags rknn_run does all the cache maintenance itself.

    The control is a run that does none; where the runtime ignores the flags, memory that no run maintains.
    """
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, alloc_flags=alloc_flags)
    rounds = effort.rounds(300)
    compared = hand_overs(npu, io, patterns, rounds, to_npu=None, to_cpu=None)
    npu.require_same(compared, "rknn_run without flags left input or output stale")
    npu.record_bound(rounds)
    require_run_matters(npu, alloc_flags)


@pytest.mark.requirement("SYNC-10")
@pytest.mark.needs("non_cacheable", "rknn_create_mem2")
def test_non_cacheable_memory_needs_no_sync(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """rknn_create_mem2(NON_CACHEABLE) is coherent. The control is the same in cacheable memory."""
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, flags=npu.application_syncs, alloc_flags=NON_CACHEABLE)
    rounds = effort.rounds(300)
    compared = hand_overs(npu, io, patterns, rounds, to_npu=None, to_cpu=None)
    npu.require_same(compared, "non-cacheable memory was not coherent without a sync")
    npu.record_bound(rounds)
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


@pytest.mark.requirement("SYNC-10")
@pytest.mark.needs("non_cacheable", "rknn_create_mem2", "rknn_mem_sync")
@pytest.mark.expects_runtime_errors
def test_needless_sync_is_recorded(npu: Npu, model: LoadedModel) -> None:
    """What syncing non-cacheable memory returns is measured, not judged: drivers refuse it, or do nothing."""
    io = ZeroCopy("a", model, alloc_flags=NON_CACHEABLE)
    modes = {"TO_DEVICE": TO_DEVICE, "FROM_DEVICE": FROM_DEVICE, "BIDIRECTIONAL": BIDIRECTIONAL}
    program = Program()
    io.open(program)
    for name, mode in modes.items():
        program.sync(io.input, mode, io.context, expect="any", save=name)
    io.close(program)
    for name, code in npu.execute(program).items():
        npu.record.measure(f"code of a needless {name}", code_name(code))


@pytest.mark.requirement("SYNC-12")
@pytest.mark.parametrize("given", ["context", pytest.param("null", marks=pytest.mark.expects_runtime_errors)])
def test_context_argument_of_sync(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort, given: str
) -> None:
    """The real context works everywhere; NULL works except on RV1103 and RV1106, which may refuse it.

    Whatever returns success must have synced. In a process of its own, since NULL may end it.
    """
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    context = io.context if given == "context" else None
    may_refuse = given == "null" and not npu.soc.null_context_sync
    expect = "any" if may_refuse else "success"
    expected = npu.reference(model, patterns)
    program = Program()
    with program.child("child"):
        io.open(program)
        with program.repeat(effort.rounds(30)):
            program.write_cycle(io.input, patterns)
            program.sync(io.input, TO_DEVICE, context, expect=expect, save="to")
            program.run(io.context)
            program.sync(io.output, FROM_DEVICE, context, expect=expect, save="from")
            io.compare_output(program, expected, "output")
        io.close(program)
    what = f"rknn_mem_sync with {'its' if given == 'context' else 'a NULL'} context"
    values = require_survived(npu, npu.execute(program)["child"], what)
    codes = sorted({*values["to"], *values["from"]})
    npu.record.measure("codes of rknn_mem_sync", ", ".join(map(code_name, codes)))
    if 0 not in codes:
        return
    if codes != [0]:
        raise ConformanceFailure(f"{what} answered {codes}: neither accepted nor refused")
    npu.require_same(values["output"], f"{what} returned success but did not sync")
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


@pytest.mark.requirement("SYNC-14")
def test_control_without_syncs(npu: Npu, model: LoadedModel, sensitivity: Sensitivity) -> None:
    """Measured, not judged: how many lines are stale where the sync of a direction is left out."""
    npu.record.measure("stale lines without TO_DEVICE", sensitivity.to_device, "lines")
    npu.record.measure("stale lines without FROM_DEVICE", sensitivity.from_device, "lines")
    npu.record.measure("lines that could be stale", sensitivity.lines, "lines")
    if not npu.knows_flush_flags:
        npu.record.note("this runtime ignores the DISABLE_FLUSH flags: rknn_run itself may have synced")
