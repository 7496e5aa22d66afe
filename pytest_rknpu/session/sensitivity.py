"""How sensitive a board is to a missing sync: the control beside every SYNC test (SYNC-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_rknpu.agent.abi import RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE
from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.session.program import FROM_DEVICE, TO_DEVICE, Program
from pytest_rknpu.session.zero_copy import ZeroCopy, bound_attr, significant_bytes

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel, Npu

LINE = 64
PAGE = 4096
PARTS = 4
"""How many parts of an internal memory are looked at: a run need not use all of it."""


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


def measure_incoherence(npu: Npu) -> int:
    """Stale 64-byte lines of a memory that the NPU wrote and nobody synced: takes no rknn_mem_sync, no flags.

    It is the internal memory of one context, given from outside, which rknn_run leaves alone. The CPU reads
    it before a run and again after it. What the NPU sees there tells another context, whose input is a part
    of it: its output is another than for what the CPU read.
    """
    wide, probe = npu.model("probe_wide"), npu.model("probe_pointwise")
    writer = ZeroCopy("writer", wide, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
    reader = ZeroCopy("reader", probe)
    size = max(wide.description.internal_size, reader.input_size)
    last = (size - reader.input_size) // PAGE
    offsets = sorted({last * part // (PARTS - 1) * PAGE for part in range(PARTS)})
    program = Program()
    program.init(writer.context, wide.sha256, flags=writer.flags)
    program.create_mem("internal", writer.context, size)
    program.bind_internal(writer.context, "internal")
    writer.bind(program)
    reader.open(program)
    program.write(writer.input, npu.random_inputs(wide, 1)[0])
    program.read("internal", "before")
    program.run(writer.context)
    program.read("internal", "after")
    for offset in offsets:
        _look_at_a_part(program, reader, offset)
    reader.close(program)
    program.destroy_mem("internal", writer.context)
    writer.close(program)
    values = npu.execute(program)
    parts = [values["after"][offset : offset + reader.input_size] for offset in offsets]
    expected = npu.reference(probe, parts)
    mask = significant_bytes(probe.description.outputs[0]) or b"\xff" * reader.output_size
    return sum(
        _differing_lines(values[f"at {offset}"], image, mask)
        for offset, image in zip(offsets, expected, strict=True)
    )


def _look_at_a_part(program: Program, reader: ZeroCopy, offset: int) -> None:
    """Run ``reader`` on what the NPU sees of "internal" from ``offset`` on."""
    program.import_fd("part", reader.context, "internal", reader.input_size, offset=offset)
    native = reader.model.description.inputs[0].native
    program.bind(reader.context, "part", bound_attr(native, "input"))
    program.run(reader.context)
    program.read(reader.output, f"at {offset}")
    program.bind(reader.context, reader.input, bound_attr(native, "input"))
    program.destroy_mem("part", reader.context)


def _differing_lines(actual: bytes, expected: bytes, mask: bytes) -> int:
    """How many 64-byte lines differ in a byte that ``mask`` does not leave out."""
    differing = [kept and a != b for kept, a, b in zip(mask, actual, expected, strict=True)]
    return sum(any(differing[start : start + LINE]) for start in range(0, len(differing), LINE))


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


def require_run_matters(npu: Npu, alloc_flags: int | None = None) -> None:
    """Make the item inconclusive unless what rknn_run does for the caches is needed on this board.

    Where the runtime ignores the DISABLE_FLUSH flags no run can be made to do without; memory that no run
    maintains then shows what would be. That is one direction; an NPU snoops in both or in none.
    """
    if npu.knows_flush_flags:
        control = measure_sensitivity(npu, npu.model("probe_pointwise"), alloc_flags)
        require_sensitive(min(control.to_device, control.from_device), "TO_DEVICE or FROM_DEVICE")
        return
    stale = measure_incoherence(npu)
    npu.record.measure("stale lines of memory that nobody maintains", stale, "lines")
    require_sensitive(stale, "FROM_DEVICE")
