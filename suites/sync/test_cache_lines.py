"""SYNC-05 to SYNC-07: every cache line, parts of lines, and the neighbours of a buffer (guide 4.1.6)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    BIDIRECTIONAL,
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
from pytest_rknpu.session.zero_copy import bound_attr, significant_bytes

LINE = 64  # bytes of a cache line
PAGE = 4096


@pytest.mark.requirement("SYNC-05")
def test_every_line_is_covered(npu: Npu, model: LoadedModel, sensitivity: Sensitivity) -> None:
    """Change one 64-byte line at a time, in permuted order; only its image changes, and it does change."""
    start = npu.random_inputs(model, 1)[0]
    order = [int(line) for line in npu.random.permutation(len(start) // LINE)]
    contents = [start]
    for line in order:
        changed = bytearray(contents[-1])
        changed[line * LINE : (line + 1) * LINE] = _every_byte_changed(
            changed[line * LINE : (line + 1) * LINE]
        )
        contents.append(bytes(changed))
    expected = npu.reference(model, contents)
    unseen = [line for line, a, b in zip(order, expected, expected[1:], strict=False) if a == b]
    if unseen:
        raise Inconclusive(f"the model does not show a change of lines {unseen}: they were not tested")
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    program = Program()
    io.open(program)
    program.write(io.input, start)
    program.sync(io.input, TO_DEVICE, io.context)
    for line, content, output in zip(order, contents[1:], expected[1:], strict=True):
        program.write(io.input, content[line * LINE : (line + 1) * LINE], offset=line * LINE)
        program.sync(io.input, TO_DEVICE, io.context)
        program.run(io.context)
        program.sync(io.output, FROM_DEVICE, io.context)
        io.compare_output(program, [output], f"line {line}")
    io.close(program)
    values = npu.execute(program)
    for line in order:
        npu.require_same(values[f"line {line}"], f"only line {line} of the input changed")
    npu.record.measure("lines tested", len(order), "lines")
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


def _every_byte_changed(data: bytes | bytearray) -> bytes:
    """The same bytes with the top bit flipped: far away for int8, so that no rounding hides it."""
    return bytes(byte ^ 0x80 for byte in data)


@pytest.mark.requirement("SYNC-06")
def test_partial_lines_are_covered(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort
) -> None:
    """Random [start, start + length) writes; bytes before, inside and after are right in the output."""
    content = npu.random_inputs(model, 1)[0]
    writes: list[tuple[int, bytes]] = []
    contents = []
    for _ in range(effort.rounds(100)):
        offset = int(npu.random.integers(0, len(content)))
        length = min(int(npu.random.integers(1, 3 * LINE)), len(content) - offset)
        data = _every_byte_changed(content[offset : offset + length])
        content = content[:offset] + data + content[offset + length :]
        writes.append((offset, data))
        contents.append(content)
    expected = npu.reference(model, contents)
    shown = sum(before != after for before, after in pairwise(expected))
    if shown < len(expected) - 1:
        raise Inconclusive(f"the model shows {shown} of {len(expected) - 1} changes: the rest was not tested")
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    program = Program()
    io.open(program)
    for number, ((offset, data), whole, output) in enumerate(zip(writes, contents, expected, strict=True)):
        program.write(io.input, data if number else whole, offset=offset if number else 0)
        program.sync(io.input, TO_DEVICE, io.context)
        program.run(io.context)
        program.sync(io.output, FROM_DEVICE, io.context)
        io.compare_output(program, [output], str(number))
    io.close(program)
    values = npu.execute(program)
    for number, (offset, data) in enumerate(writes):
        npu.require_same(values[str(number)], f"write {number} of bytes [{offset}, {offset + len(data)})")
    npu.record_bound(len(writes))
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


@pytest.mark.requirement("SYNC-06")
def test_a_memory_that_ends_within_a_line(npu: Npu, sensitivity: Sensitivity, effort: Effort) -> None:
    """The classifier's ten scores fill no whole line: FROM_DEVICE of their memory covers that line too."""
    model = npu.model("digits_cnn")
    inputs = _with_different_outputs(npu, model, 4)
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    if io.output_size % LINE == 0:
        pytest.skip(f"this board stores the {model.description.outputs[0].shape} scores in whole lines")
    rounds = effort.rounds(100)
    compared = hand_overs(npu, io, inputs, rounds, to_npu=BIDIRECTIONAL, to_cpu=FROM_DEVICE)
    npu.require_same(compared, f"an output of {io.output_size} bytes, which is no whole number of lines")
    npu.record_bound(rounds)
    require_sensitive(sensitivity.from_device, "FROM_DEVICE")


def _with_different_outputs(npu: Npu, model: LoadedModel, count: int) -> list[bytes]:
    """Random inputs, each with another result than the one before."""
    inputs = npu.random_inputs(model, 4 * count)
    outputs = npu.reference(model, inputs)
    chosen = [0]
    for number in range(1, len(inputs)):
        if outputs[number] != outputs[chosen[-1]] and len(chosen) < count:
            chosen.append(number)
    if len(chosen) < 2 or outputs[chosen[-1]] == outputs[chosen[0]]:
        raise Inconclusive(f"{model.name} gives the same result for different random inputs")
    return [inputs[number] for number in chosen]


@pytest.mark.requirement("SYNC-05")
@pytest.mark.parametrize("kib", [4, 16, 64, 1024])
def test_lines_of_a_large_memory_are_covered(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort, kib: int
) -> None:
    """Input and output lie ``kib`` KiB behind the start of two memories, which are synced as a whole."""
    offset = kib << 10
    inputs = npu.random_inputs(model, 4)
    io = ZeroCopy("a", model)
    native = {"input": model.description.inputs[0].native, "output": model.description.outputs[0].native}
    sizes = {"input": io.input_size, "output": io.output_size}
    expected, mask = npu.reference(model, inputs), significant_bytes(model.description.outputs[0])
    rounds = effort.rounds(20)
    program = Program()
    program.init(io.context, model.sha256, flags=npu.application_syncs)
    for name, attr in native.items():
        program.create_mem(f"{name} whole", io.context, offset + sizes[name])
        program.import_fd(name, io.context, f"{name} whole", sizes[name], offset=offset)
        program.bind(io.context, name, bound_attr(attr, name))
    with program.repeat(rounds):
        program.write_cycle("input whole", inputs, offset=offset)
        program.sync("input whole", TO_DEVICE, io.context)
        program.run(io.context)
        program.sync("output whole", FROM_DEVICE, io.context)
        program.compare_cycle("output whole", expected, "output", offset=offset, mask=mask)
    values = npu.execute(program)
    npu.require_same(values["output"], f"a sync of memories of {offset + max(sizes.values())} bytes")
    npu.record_bound(rounds)
    require_sensitive(min(sensitivity.to_device, sensitivity.from_device), "TO_DEVICE or FROM_DEVICE")


@pytest.mark.requirement("SYNC-07")
@pytest.mark.parametrize(
    "offset",
    [0, *(pytest.param(offset, marks=pytest.mark.expects_runtime_errors) for offset in (16, 48, 64)), PAGE],
    ids=lambda value: f"offset{value}",
)
def test_neighbours_survive(
    npu: Npu, model: LoadedModel, sensitivity: Sensitivity, effort: Effort, offset: int
) -> None:
    """The CPU dirties the bytes beside an imported output while the NPU writes it: both survive.

    A runtime may refuse to create or bind memory at an offset. Which it needs no document says (a sample of
    the SDK aligns to 128 bytes); a whole page is never refused.
    """
    size = ZeroCopy("a", model).output_size
    patterns = npu.random_inputs(model, 2)
    before, after = 0xC3, 0x3C
    io = ZeroCopy("a", model, flags=npu.application_syncs)
    opening = Program()
    io.open(opening)
    opening.create_mem("base", io.context, offset + size + PAGE)
    npu.execute(opening)
    refusal = _import_and_bind(npu, io, model, size, offset)
    if refusal:
        npu.record.note(refusal)
        if offset % PAGE == 0:
            raise ConformanceFailure(f"memory imported at the page offset {offset} was refused: {refusal}")
        return
    program = Program()
    with program.repeat(effort.rounds(30)):
        program.write_cycle(io.input, patterns)
        program.sync(io.input, TO_DEVICE, io.context)
        _write_neighbours(program, offset, size, before ^ 0xFF, after ^ 0xFF)
        program.sync("base", BIDIRECTIONAL, io.context)
        _write_neighbours(program, offset, size, before, after)
        program.run(io.context)
        program.sync("part", FROM_DEVICE, io.context)
        program.compare_cycle("part", npu.reference(model, patterns), "output")
        program.sync("base", BIDIRECTIONAL, io.context)
        program.compare_cycle("base", npu.reference(model, patterns), "output later", offset=offset)
        if offset:
            program.compare(
                "base", bytes([before]) * min(offset, LINE), "before", offset=max(0, offset - LINE)
            )
        program.compare("base", bytes([after]) * LINE, "after", offset=offset + size)
    values = npu.execute(program)
    for name in ("output", "output later"):
        npu.require_same(values[name], f"the NPU's output at offset {offset} ({name})")
    for name in ("before", "after"):
        if name in values:
            npu.require_same(values[name], f"the CPU's bytes {name} the imported output at offset {offset}")
    require_sensitive(sensitivity.from_device, "FROM_DEVICE")


def _import_and_bind(npu: Npu, io: ZeroCopy, model: LoadedModel, size: int, offset: int) -> str | None:
    """Import part of "base" as "part" and bind it as output; returns the runtime's refusal, or None."""
    program = Program()
    program.import_fd("part", io.context, "base", size, offset=offset)
    program.bind(io.context, "part", model.description.outputs[0].native)
    try:
        npu.execute(program)
    except ConformanceFailure as refused:
        return str(refused)
    return None


def _write_neighbours(program: Program, offset: int, size: int, before: int, after: int) -> None:
    """The CPU writes up to one line on each side of [offset, offset + size) of "base"."""
    if offset:
        program.fill("base", before, offset=max(0, offset - LINE), length=min(offset, LINE))
    program.fill("base", after, offset=offset + size, length=LINE)
