"""The points at which a board's behaviour is decided, each with the sound behaviour; a fault replaces one
of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from pytest_rknpu.agent.abi import AllocationFlag, MemorySyncMode
from pytest_rknpu.emulator.forms import Form
from pytest_rknpu.emulator.memory import LINE_BYTES, CacheBehaviour

if TYPE_CHECKING:
    from pytest_rknpu.emulator.state import Memory

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Range:
    """Bytes of a storage: [start, end). ``offset`` is where the memory that it belongs to begins in the
    storage, ``size`` how many bytes that has; ``end`` may lie behind them, at the end of a line.
    """

    start: int
    end: int
    offset: int
    size: int


@dataclass(frozen=True)
class SyncStep:
    """One piece of cache maintenance over the bytes [start, end) of a storage."""

    operation: Literal["clean", "invalidate"]
    start: int
    end: int


@dataclass(frozen=True)
class OutputWrite:
    """An output that a run is about to write: ``data`` to the start of its memory.

    ``size`` is how many bytes its memory takes, padding included.
    ``memo`` is a dict of the context that lives from run to run; ``internal`` is the NPU's view of the
    internal buffer.
    """

    index: int
    data: Bytes
    size: int
    memo: dict[int, list[tuple[int, Bytes]]]
    core_mask: int
    zero_copy: bool
    internal: Bytes
    run_number: int


@dataclass(frozen=True)
class RootFacts:
    """What the synthetic sysroot shows; ``compatible`` None is the SoC's own device tree."""

    has_npu_node: bool = True
    compatible: str | None = None


def sync_steps(mode: int, covered: Range) -> list[SyncStep]:
    """What the driver does for a mode of rknn_mem_sync: clean, invalidate, or both in this order."""
    steps = []
    if mode & MemorySyncMode.RKNN_MEMORY_SYNC_TO_DEVICE:
        steps.append(SyncStep("clean", covered.start, covered.end))
    if mode & MemorySyncMode.RKNN_MEMORY_SYNC_FROM_DEVICE:
        steps.append(SyncStep("invalidate", covered.start, covered.end))
    return steps


def sync_target(memory: Memory, others: Iterable[Memory]) -> Memory | None:
    """The memory whose caches are maintained when ``memory`` is to be synced; None: none at all."""
    return memory


def run_maintains(side: Literal["inputs", "outputs"]) -> bool:
    """Whether rknn_run syncs bound memories by itself, where no flag forbids it."""
    return True


def is_coherent(alloc_flags: int) -> bool:
    """Whether memory made with these rknn_create_mem2 flags has one view for CPU and NPU."""
    return bool(alloc_flags & AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE)


def accepts_import_at(offset: int) -> bool:
    """Whether a part of a memory may begin there: a line with two owners cannot be kept coherent."""
    return offset % LINE_BYTES == 0


def internal_fits(given: int, needed: int) -> bool:
    """Whether rknn_set_internal_mem takes ``given`` bytes for a plan of ``needed``."""
    return given >= needed


def output_writes(request: OutputWrite) -> list[tuple[int, Bytes]]:
    """(offset, bytes) that the NPU writes to an output's memory, in order."""
    return [(0, request.data)]


def weight_writes(weights: Bytes, run_number: int) -> list[tuple[int, Bytes]]:
    """(offset, bytes) that a zero-copy run writes to the weight memory: none."""
    return []


def copying_form(form: Form) -> Form:
    """The form in which rknn_inputs_set lays an input out for the NPU: the one that the NPU reads."""
    return form


def reported_row(pitch: int, width: int) -> int:
    """What a query gives as ``w_stride`` of rows of ``width`` pixels that lie ``pitch`` apart."""
    return pitch


def reported_internal(size: int) -> int:
    """What RKNN_QUERY_MEM_SIZE reports of an internal buffer of ``size`` bytes."""
    return size


def start_run() -> None:
    """What happens before a zero-copy run does anything: nothing."""


def after_refusal() -> None:
    """What a call that gives an error code leaves behind: nothing."""


def reject_argument() -> None:
    """What happens before a bad argument's error code is returned: nothing."""


def run_error_line() -> str | None:
    """An error that a successful run logs: none."""
    return None


@dataclass(frozen=True)
class Hooks:
    """All points together; the defaults are a sound board."""

    cache: CacheBehaviour = field(default_factory=CacheBehaviour)
    root: RootFacts = field(default_factory=RootFacts)
    sync_steps: Callable[[int, Range], list[SyncStep]] = sync_steps
    sync_target: Callable[[Memory, Iterable[Memory]], Memory | None] = sync_target
    run_maintains: Callable[[Literal["inputs", "outputs"]], bool] = run_maintains
    is_coherent: Callable[[int], bool] = is_coherent
    accepts_import_at: Callable[[int], bool] = accepts_import_at
    internal_fits: Callable[[int, int], bool] = internal_fits
    output_writes: Callable[[OutputWrite], list[tuple[int, Bytes]]] = output_writes
    weight_writes: Callable[[Bytes, int], list[tuple[int, Bytes]]] = weight_writes
    copying_form: Callable[[Form], Form] = copying_form
    reported_row: Callable[[int, int], int] = reported_row
    reported_internal: Callable[[int], int] = reported_internal
    start_run: Callable[[], None] = start_run
    after_refusal: Callable[[], None] = after_refusal
    reject_argument: Callable[[], None] = reject_argument
    run_error_line: Callable[[], str | None] = run_error_line
    close_descriptor: Callable[[int], None] = os.close
    duplicates_share_internal: bool = False
    duplicates_move_weights: bool = False
    fills_given_weights: bool = True
    serves_destroyed_memories: bool = False
    frees_what_was_imported: bool = False
    syncs_without_context: bool = True
    checks_input_sizes: bool = True
    loads_truncated_models: bool = False
    loads_foreign_models: bool = False
    serves_destroyed_contexts: bool = False

    # What no document settles, so that a sound board may do either (`choices`).
    fresh_byte: int = 0
    padding_byte: int = 0
    syncs_non_cacheable: bool = True
    reports_sizes_without_flag: bool = True
    memories_serve_all_contexts: bool = True
    converts_pixels_for_all_channels: bool = True
    run_maintains_converted_outputs: bool = True
    run_maintains_imports: bool = True
    run_refuses_small_internal: bool = False
    unknown_core_mask: Literal["refused", "named", "silent"] = "refused"
    """"named" falls back with a warning in the log; "silent" is a fault."""
