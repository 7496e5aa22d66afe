"""How each fault breaks a board: functions that replace points of `hooks.Hooks`.

Which fault uses which of them, and which requirement must notice, is the table in `faults`.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pytest_rknpu.agent.abi import CoreMask, MemorySyncMode, TensorMemoryFlag
from pytest_rknpu.emulator.hooks import Bytes, Hooks, OutputWrite, Range, SyncStep
from pytest_rknpu.emulator.memory import LINE_BYTES

if TYPE_CHECKING:
    from pytest_rknpu.emulator.state import Memory

Parameters = Mapping[str, str]
Install = Callable[[Hooks, Parameters], Hooks]

_TO_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_TO_DEVICE
_FROM_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_FROM_DEVICE
_BIDIRECTIONAL = MemorySyncMode.RKNN_MEMORY_SYNC_BIDIRECTIONAL


def drop(operation: str) -> Install:
    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def steps(mode: int, covered: Range) -> list[SyncStep]:
            return [step for step in hooks.sync_steps(mode, covered) if step.operation != operation]

        return replace(hooks, sync_steps=steps)

    return install


def swap_directions(hooks: Hooks, _: Parameters) -> Hooks:
    swapped = {int(_TO_DEVICE): int(_FROM_DEVICE), int(_FROM_DEVICE): int(_TO_DEVICE)}

    def steps(mode: int, covered: Range) -> list[SyncStep]:
        return hooks.sync_steps(swapped.get(mode, mode), covered)

    return replace(hooks, sync_steps=steps)


def halve_bidirectional(hooks: Hooks, parameters: Parameters) -> Hooks:
    side = _TO_DEVICE if parameters["does"] == "to-device" else _FROM_DEVICE

    def steps(mode: int, covered: Range) -> list[SyncStep]:
        return hooks.sync_steps(int(side) if mode == _BIDIRECTIONAL else mode, covered)

    return replace(hooks, sync_steps=steps)


def miss_last_line(hooks: Hooks, _: Parameters) -> Hooks:
    def steps(mode: int, covered: Range) -> list[SyncStep]:
        last_line = (covered.end - 1) // LINE_BYTES * LINE_BYTES
        return hooks.sync_steps(mode, replace(covered, end=max(covered.start, last_line)))

    return replace(hooks, sync_steps=steps)


def ignore_offset(hooks: Hooks, _: Parameters) -> Hooks:
    def steps(mode: int, covered: Range) -> list[SyncStep]:
        shifted = Range(covered.start - covered.offset, covered.end - covered.offset, 0, covered.size)
        return hooks.sync_steps(mode, shifted)

    return replace(hooks, sync_steps=steps)


def round_range_down(hooks: Hooks, _: Parameters) -> Hooks:
    def steps(mode: int, covered: Range) -> list[SyncStep]:
        whole = covered.size // LINE_BYTES * LINE_BYTES
        return hooks.sync_steps(mode, replace(covered, end=covered.start + whole))

    return replace(hooks, sync_steps=steps)


def stop_at(size: int) -> Install:
    """Cache maintenance ends ``size`` bytes behind the range's start."""

    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def steps(mode: int, covered: Range) -> list[SyncStep]:
            return hooks.sync_steps(mode, replace(covered, end=min(covered.end, covered.start + size)))

        return replace(hooks, sync_steps=steps)

    return install


def leave_out_line(offset: int) -> Install:
    """Cache maintenance leaves out the line that begins ``offset`` bytes behind the range's start."""

    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def steps(mode: int, covered: Range) -> list[SyncStep]:
            hole = covered.start + offset
            if not covered.start <= hole < covered.end:
                return hooks.sync_steps(mode, covered)
            before = replace(covered, end=hole)
            behind = replace(covered, start=min(hole + LINE_BYTES, covered.end))
            return [*hooks.sync_steps(mode, before), *hooks.sync_steps(mode, behind)]

        return replace(hooks, sync_steps=steps)

    return install


def lose_one_sync_in(count: int) -> Install:
    """Every ``count``-th cache maintenance does nothing."""

    def install(hooks: Hooks, _: Parameters) -> Hooks:
        calls = itertools.count(1)

        def steps(mode: int, covered: Range) -> list[SyncStep]:
            return [] if next(calls) % count == 0 else hooks.sync_steps(mode, covered)

        return replace(hooks, sync_steps=steps)

    return install


def sync_another_memory(hooks: Hooks, _: Parameters) -> Hooks:
    def target(memory: Memory, others: Iterable[Memory]) -> Memory | None:
        of_its_context = [other for other in others if other is not memory and other.owner == memory.owner]
        return of_its_context[0] if of_its_context else memory

    return replace(hooks, sync_target=target)


def pass_over_imports(hooks: Hooks, _: Parameters) -> Hooks:
    def target(memory: Memory, others: Iterable[Memory]) -> Memory | None:
        imported = memory.structure.flags == TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
        return None if imported else memory

    return replace(hooks, sync_target=target)


def write_back_late(hooks: Hooks, _: Parameters) -> Hooks:
    cache = replace(hooks.cache, cleaning_clears_dirty=False, writes_back_after_run=True)
    return replace(hooks, cache=cache)


def lose_edge_neighbours(hooks: Hooks, _: Parameters) -> Hooks:
    cache = replace(hooks.cache, edges_are_cleaned=False)
    return replace(hooks, cache=cache, accepts_import_at=lambda offset: True)


def skip_run_flush(hooks: Hooks, parameters: Parameters) -> Hooks:
    missing = {"both": ("inputs", "outputs")}.get(parameters["side"], (parameters["side"],))
    return replace(hooks, run_maintains=lambda side: side not in missing and hooks.run_maintains(side))


def spoil_zero_copy(
    spoil: Callable[[OutputWrite, list[tuple[int, Bytes]]], list[tuple[int, Bytes]]],
) -> Install:
    """A fault that changes what a run writes to zero-copy outputs."""

    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def writes(request: OutputWrite) -> list[tuple[int, Bytes]]:
            sound = hooks.output_writes(request)
            return spoil(request, sound) if request.zero_copy else sound

        return replace(hooks, output_writes=writes)

    return install


def previous_frame(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    before = request.memo.get(request.index, sound)
    request.memo[request.index] = sound
    return before


def previous_frame_once_in(
    count: int,
) -> Callable[[OutputWrite, list[tuple[int, Bytes]]], list[tuple[int, Bytes]]]:
    """Every ``count``-th run of a context hands out the result of the run before."""

    def spoil(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
        before = previous_frame(request, sound)
        return before if request.run_number % count == count - 1 else sound

    return spoil


def scratch_in_output(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    # It differs from run to run, so that a reference made by zero copy too (mini runtime) does not agree.
    scratch = ~request.internal[: min(LINE_BYTES, len(request.data))] + np.uint8(request.run_number % 256)
    return [*sound, (0, scratch)]


def overrun(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    return [*sound, (request.size, np.zeros(LINE_BYTES, np.uint8))]


def unwritten_end(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    return [(offset, data[: max(len(data) - LINE_BYTES, 0)]) for offset, data in sound]


def core_dependent(hooks: Hooks, _: Parameters) -> Hooks:
    single = {int(CoreMask.RKNN_NPU_CORE_AUTO), int(CoreMask.RKNN_NPU_CORE_0)}

    def writes(request: OutputWrite) -> list[tuple[int, Bytes]]:
        if request.core_mask in single:
            return hooks.output_writes(request)
        differing = request.data.copy()
        differing[::LINE_BYTES] ^= 1
        return hooks.output_writes(replace(request, data=differing))

    return replace(hooks, output_writes=writes)


def scribble(hooks: Hooks, _: Parameters) -> Hooks:
    def writes(weights: Bytes, run_number: int) -> list[tuple[int, Bytes]]:
        if not len(weights):
            return []
        position = run_number * 97 % len(weights)
        return [(position, weights[position : position + 1] ^ np.uint8(0x55))]

    return replace(hooks, weight_writes=writes)


def crash(hooks: Hooks, _: Parameters) -> Hooks:
    def reject() -> None:
        ctypes.string_at(0)  # reads address 0, as a library does that checks nothing

    return replace(hooks, reject_argument=reject)


def log_error(hooks: Hooks, _: Parameters) -> Hooks:
    line = "REGTASK: The bit width of field value exceeds the limit, target: 0x1001, value: 0xffff"
    return replace(hooks, run_error_line=lambda: line)


def tight_copying_rows(hooks: Hooks, _: Parameters) -> Hooks:
    return replace(hooks, copying_form=lambda form: replace(form, pitch=0))


def leak_descriptors_of_refusals(hooks: Hooks, _: Parameters) -> Hooks:
    def leak() -> None:
        os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    return replace(hooks, after_refusal=leak)


def set_fields(**fields: object) -> Install:
    """A fault that is one changed field of the hooks."""
    # The keys are Hooks' own fields; the tests install every fault.
    return lambda hooks, _: replace(hooks, **fields)  # type: ignore[arg-type]
