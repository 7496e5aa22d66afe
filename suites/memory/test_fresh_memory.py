"""MEM-13: what is in memory that was just allocated, after somebody else had it."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.session import BIDIRECTIONAL, LoadedModel, Npu, Program, ZeroCopy

SIZE = 1 << 20
MARK = bytes(range(0x80, 0xC0))  # a line that memory does not hold by chance


@pytest.mark.requirement("MEM-13")
@pytest.mark.parametrize("freed_by", ["memory", "context"])
def test_fresh_memory_is_recorded(npu: Npu, chain: LoadedModel, freed_by: str) -> None:
    """Recorded, not judged: bytes that are not zero, and lines that still hold what the last owner wrote."""
    first, second = ZeroCopy("first", chain), ZeroCopy("second", chain)
    program = Program()
    first.open(program)
    program.create_mem("marked", first.context, SIZE)
    program.write("marked", MARK * (SIZE // len(MARK)))
    program.sync("marked", BIDIRECTIONAL, first.context)
    program.read("marked", "marked", length=len(MARK))
    program.destroy_mem("marked", first.context)
    if freed_by == "context":
        first.close(program)
    second.open(program)
    program.create_mem("fresh", second.context, SIZE)
    program.read("fresh", "fresh")
    program.destroy_mem("fresh", second.context)
    second.close(program)
    if freed_by == "memory":
        first.close(program)
    values = npu.execute(program)
    if values["marked"] != MARK:
        raise Inconclusive("the memory did not keep what the CPU wrote, so that nothing could be found again")
    fresh = values["fresh"]
    kept = sum(fresh[at : at + len(MARK)] == MARK for at in range(0, SIZE, len(MARK)))
    npu.record.measure("fresh memory", len(fresh), "B")
    npu.record.measure("bytes that are not zero", len(fresh) - fresh.count(0), "B")
    npu.record.measure("lines of the last owner", kept, "lines")
    if kept:
        npu.record.note(
            f"{kept} of {SIZE // len(MARK)} lines of a fresh memory hold what the last owner wrote: data of "
            "one process can reach another if the driver does the same between processes"
        )
