"""How sensitive a board is to a missing sync: the control beside every SYNC test (SYNC-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.session.program import FROM_DEVICE, TO_DEVICE, Program
from pytest_rknpu.session.zero_copy import ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel, Npu

LINE = 64


@dataclass(frozen=True)
class Sensitivity:
    """Stale 64-byte lines that the CPU or the NPU saw when the sync of one direction was left out."""

    to_device: int
    from_device: int
    lines: int


def measure_sensitivity(npu: Npu, model: LoadedModel, alloc_flags: int | None = None) -> Sensitivity:
    """Leave one sync out at a time and count the lines that stayed old. ``alloc_flags`` as for ZeroCopy."""
    old, new = npu.random_inputs(model, 2)
    seen_old, seen_new = npu.reference(model, [old, new])
    io = ZeroCopy("control", model, flags=npu.application_syncs, alloc_flags=alloc_flags)
    program = Program()
    io.open(program)
    # An input that the NPU has read before, then changed without TO_DEVICE.
    _hand_over_and_run(program, io, old)
    program.sync(io.output, FROM_DEVICE, io.context)
    program.write(io.input, new)
    program.run(io.context)
    program.sync(io.output, FROM_DEVICE, io.context)
    program.read(io.output, "without to_device")
    # An output that the CPU has read before, then read again without FROM_DEVICE.
    _hand_over_and_run(program, io, old)
    program.sync(io.output, FROM_DEVICE, io.context)
    program.read(io.output, "cached")
    _hand_over_and_run(program, io, new)
    program.read(io.output, "without from_device")
    io.close(program)
    values = npu.execute(program)
    return Sensitivity(
        to_device=stale_lines(values["without to_device"], seen_old, seen_new),
        from_device=stale_lines(values["without from_device"], seen_old, seen_new),
        lines=len(seen_new) // LINE,
    )


def _hand_over_and_run(program: Program, io: ZeroCopy, data: bytes) -> None:
    """Write an input, give it to the device, run."""
    program.write(io.input, data)
    program.sync(io.input, TO_DEVICE, io.context)
    program.run(io.context)


def stale_lines(actual: bytes, old: bytes, new: bytes) -> int:
    """How many 64-byte lines of ``actual`` hold the old bytes, where old and new differ."""
    starts = range(0, len(new), LINE)
    return sum(
        actual[s : s + LINE] == old[s : s + LINE] and old[s : s + LINE] != new[s : s + LINE] for s in starts
    )


def require_sensitive(stale: int, direction: str) -> None:
    """Make the item inconclusive where leaving the sync out changed nothing on this board."""
    if stale == 0:
        raise Inconclusive(
            f"insensitive: with the {direction} sync left out no line was stale, so this board (or a "
            f"runtime that syncs by itself) cannot show the fault; the data were right, which proves nothing "
            "here"
        )
