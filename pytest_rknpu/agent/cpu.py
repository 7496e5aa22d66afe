"""Steps of the CPU: write, fill, read, digest, compare and thrash memory, look at time and resources."""

from __future__ import annotations

import ctypes
import hashlib
import time
from operator import ne
from typing import Any, Callable, Dict

from .compiler import Compiler, Step
from .failures import ProgramFailure
from .resources import snapshot
from .state import Memory

Arguments = Dict[str, Any]

LINE = 64
"""Bytes of a cache line on every supported SoC."""
SHOWN = 16
"""How many differing offsets and lines a detail lists."""


def _choices(arguments: Arguments) -> tuple[bytes, ...]:
    """The blobs that iterations take in turn; ``data`` is a cycle of one."""
    data, cycle = arguments["data"], arguments["cycle"]
    if (data is None) == (cycle is None):
        raise ProgramFailure("give one of data and cycle")
    return (data,) if cycle is None else cycle


def build_write(arguments: Arguments, compiler: Compiler) -> Step:
    """Copy a blob into the memory at ``offset``."""
    name, offset, choices = arguments["memory"], arguments["offset"], _choices(arguments)
    compiler.memories.use(name)
    memories, count, memmove = compiler.state.memories, len(choices), ctypes.memmove

    def step(iteration: int) -> None:
        data = choices[iteration % count]
        memmove(memories[name].span(offset, len(data)), data, len(data))

    return step


def build_fill(arguments: Arguments, compiler: Compiler) -> Step:
    """Set ``length`` bytes from ``offset`` to one value."""
    name, offset, length, byte = (arguments[key] for key in ("memory", "offset", "length", "byte"))
    compiler.memories.use(name)
    memories = compiler.state.memories

    def step(iteration: int) -> None:
        memory = memories[name]
        count = _length(memory, offset, length)
        ctypes.memset(memory.span(offset, count), byte, count)

    return step


def _length(memory: Memory, offset: int, length: int | None) -> int:
    return max(0, memory.window - offset) if length is None else length


def _reader(arguments: Arguments, compiler: Compiler) -> Any:
    name, offset, length = arguments["memory"], arguments["offset"], arguments["length"]
    compiler.memories.use(name)
    memories = compiler.state.memories

    def read() -> bytes:
        memory = memories[name]
        count = _length(memory, offset, length)
        return ctypes.string_at(memory.span(offset, count), count)

    return read


def build_read(arguments: Arguments, compiler: Compiler) -> Step:
    """The bytes, copied once."""
    read = _reader(arguments, compiler)
    return lambda iteration: read()


def build_digest(arguments: Arguments, compiler: Compiler) -> Step:
    """The sha256 of the bytes as hexadecimal digits."""
    read = _reader(arguments, compiler)
    return lambda iteration: hashlib.sha256(read()).hexdigest()


def build_compare(arguments: Arguments, compiler: Compiler) -> Step:
    """Compare memory with a blob; every mismatch is counted, the first one is described.

    The memory is read once into a copy, and verdict and description come from that copy: a stale line may be
    replaced by the right one between two reads. Bits that are 0 in ``mask`` (padding that nobody promises)
    are taken as 0 on both sides.
    """
    name, offset, masked = arguments["memory"], arguments["offset"], _masking(arguments)
    choices = tuple(masked(choice) for choice in _choices(arguments))
    compiler.memories.use(name)
    memories, count, string_at = compiler.state.memories, len(choices), ctypes.string_at
    summary: dict[str, Any] = {"comparisons": 0, "mismatches": 0, "first": None}
    compiler.save_summary(arguments["save"], summary)

    def step(iteration: int) -> None:
        expected = choices[iteration % count]
        actual = masked(string_at(memories[name].span(offset, len(expected)), len(expected)))
        summary["comparisons"] += 1
        if actual != expected:
            summary["mismatches"] += 1
            if summary["first"] is None:
                summary["first"] = describe_difference(expected, actual, offset, iteration)

    return step


def _masking(arguments: Arguments) -> Callable[[bytes], bytes]:
    mask = arguments["mask"]
    if mask is None:
        return lambda data: data
    bits = int.from_bytes(mask, "little")

    def masked(data: bytes) -> bytes:
        if len(data) != len(mask):
            raise ProgramFailure(f"the mask has {len(mask)} bytes, the data {len(data)}")
        return (int.from_bytes(data, "little") & bits).to_bytes(len(mask), "little")

    return masked


def describe_difference(expected: bytes, actual: bytes, offset: int, iteration: int) -> dict[str, Any]:
    """What differs between two byte strings of one length that begin at ``offset`` of a memory.

    ``offsets`` and ``lines`` count from the beginning of the memory; ``expected`` and ``actual`` are the part
    of the first differing 64-byte line that was compared.
    """
    flags = bytes(map(ne, expected, actual))
    offsets: list[int] = []
    lines: list[int] = []
    position = flags.find(1)
    while position >= 0 and len(lines) < SHOWN:
        line = (offset + position) // LINE
        lines.append(line)
        position = flags.find(1, (line + 1) * LINE - offset)
    position = flags.find(1)
    while position >= 0 and len(offsets) < SHOWN:
        offsets.append(offset + position)
        position = flags.find(1, position + 1)
    start, end = max(0, lines[0] * LINE - offset), (lines[0] + 1) * LINE - offset
    return {
        "iteration": iteration,
        "differing": flags.count(1),
        "offsets": offsets,
        "lines": lines,
        "expected": expected[start:end],
        "actual": actual[start:end],
    }


def build_thrash(arguments: Arguments, compiler: Compiler) -> Step:
    """Write and then read ``size`` bytes of scratch memory, so that older lines leave the CPU's caches."""
    size = arguments["size"]
    scratch: dict[str, Any] = {}

    def step(iteration: int) -> None:
        if not scratch:
            scratch["memory"] = bytearray(size)
            scratch["view"] = (ctypes.c_char * size).from_buffer(scratch["memory"])
        ctypes.memset(scratch["view"], 1 + iteration % 2, size)
        scratch["memory"].find(0)  # never there, so that every byte is read

    return step


def build_timestamp(arguments: Arguments, compiler: Compiler) -> Step:
    """Monotonic time in nanoseconds."""
    return lambda iteration: time.monotonic_ns()


def build_resources(arguments: Arguments, compiler: Compiler) -> Step:
    """Descriptors, mappings and DMA bytes of this process and board."""
    root = compiler.services.root
    return lambda iteration: snapshot(root)
