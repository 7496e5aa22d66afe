"""SYNC-04, in detail: what rknn_run does by itself for the caches covers every line, and goes on for ever."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import LoadedModel, Npu, Program, ZeroCopy, require_run_matters
from pytest_rknpu.session.hand_over import hand_overs

LINE = 64  # bytes of a cache line


@pytest.mark.requirement("SYNC-04")
def test_a_run_covers_every_line(npu: Npu, model: LoadedModel) -> None:
    """One 64-byte line of the input is written before each run, in permuted order; each is seen."""
    content = npu.random_inputs(model, 1)[0]
    order = [int(line) for line in npu.random.permutation(len(content) // LINE)]
    writes = [(line * LINE, _flipped(content[line * LINE : (line + 1) * LINE])) for line in order]
    _write_and_run(npu, model, content, writes)
    npu.record.measure("lines tested", len(order), "lines")
    require_run_matters(npu)


@pytest.mark.requirement("SYNC-04")
def test_a_run_covers_parts_of_lines(npu: Npu, model: LoadedModel, effort: Effort) -> None:
    """Random [start, start + length) of the input are written before each run."""
    content = bytearray(npu.random_inputs(model, 1)[0])
    first, writes = bytes(content), []
    for _ in range(effort.rounds(100)):
        offset = int(npu.random.integers(0, len(content)))
        end = min(offset + int(npu.random.integers(1, 3 * LINE)), len(content))
        content[offset:end] = _flipped(content[offset:end])
        writes.append((offset, bytes(content[offset:end])))
    _write_and_run(npu, model, first, writes)
    npu.record_bound(len(writes))
    require_run_matters(npu)


@pytest.mark.requirement("SYNC-04")
def test_runs_hand_over_for_ever(npu: Npu, model: LoadedModel, effort: Effort) -> None:
    """3,000 hand-overs without a sync of the application; the generation read is always the current one."""
    rounds = effort.rounds(3000)
    generations = npu.random_inputs(model, 8)
    io = ZeroCopy("a", model)
    compared = hand_overs(npu, io, generations, rounds, to_npu=None, to_cpu=None)
    npu.require_same(compared, "a generation read was not the current one")
    npu.record_bound(rounds)
    require_run_matters(npu)


def _write_and_run(npu: Npu, model: LoadedModel, first: bytes, writes: list[tuple[int, bytes]]) -> None:
    """Run on ``first``, then after each of ``writes``; every output is the reference's for its input."""
    contents = [first]
    for offset, data in writes:
        contents.append(contents[-1][:offset] + data + contents[-1][offset + len(data) :])
    expected = npu.reference(model, contents)
    unseen = [write[0] for write, (a, b) in zip(writes, pairwise(expected), strict=True) if a == b]
    if unseen:
        raise ConformanceFailure(
            f"board {npu.session.board.name} ({npu.soc.name}): what is written at offsets {unseen} of the "
            "input does not show in the output, also by the way that relies on no sync of the application"
        )
    io = ZeroCopy("a", model)
    program = Program()
    io.open(program)
    program.write(io.input, first)
    program.run(io.context)
    io.compare_output(program, [expected[0]], "first")
    for number, ((offset, data), output) in enumerate(zip(writes, expected[1:], strict=True)):
        program.write(io.input, data, offset=offset)
        program.run(io.context)
        io.compare_output(program, [output], str(number))
    io.close(program)
    values = npu.execute(program)
    npu.require_same(values["first"], "before anything was changed")
    for number, (offset, data) in enumerate(writes):
        npu.require_same(values[str(number)], f"write {number} of bytes [{offset}, {offset + len(data)})")


def _flipped(data: bytes | bytearray) -> bytes:
    """The same bytes with the top bit flipped: far away for int8, so that no rounding hides it."""
    return bytes(byte ^ 0x80 for byte in data)
