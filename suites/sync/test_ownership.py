"""SYNC-08 and SYNC-09: ownership of a buffer can flip for ever, and nothing old comes back (guide 4.1.6)."""

from __future__ import annotations

import pytest

from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    FROM_DEVICE,
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    Sensitivity,
    ZeroCopy,
    require_sensitive,
)
from pytest_rknpu.session.hand_over import hand_overs

PATTERNS = 4
CACHE_BYTES = 4 * 1024 * 1024  # more than the last-level cache of any of these SoCs


@pytest.mark.requirement("SYNC-09")
def test_a_dirty_output_line_does_not_come_back(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """Dirty the output, hand it over, run, evict the cache, sync, read: the NPU's result must stand."""
    patterns = npu.random_inputs(model, PATTERNS)
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    program = Program()
    io.open(program)
    rounds = effort.rounds(100)
    with program.repeat(rounds):
        program.fill(io.output, 0x5A)
        program.sync(io.output, TO_DEVICE, io.context)
        program.write_cycle(io.input, patterns)
        program.sync(io.input, TO_DEVICE, io.context)
        program.run(io.context)
        program.thrash(CACHE_BYTES)
        program.sync(io.output, FROM_DEVICE, io.context)
        io.compare_output(program, npu.reference(model, patterns), "output")
    io.close(program)
    npu.require_same(npu.execute(program)["output"], "old CPU bytes were written back over the NPU's result")
    npu.record_bound(rounds)
    require_sensitive(sensitivity.from_device, "FROM_DEVICE")


@pytest.mark.requirement("SYNC-08")
def test_ownership_flips_for_ever(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """3,000 hand-overs between CPU and NPU; the generation read is always the current one."""
    generations = npu.random_inputs(model, 8)
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    rounds = effort.rounds(3000)
    compared = hand_overs(npu, io, generations, rounds, to_npu=TO_DEVICE, to_cpu=FROM_DEVICE)
    npu.require_same(compared, "a generation read was not the current one")
    npu.record_bound(rounds)
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")
