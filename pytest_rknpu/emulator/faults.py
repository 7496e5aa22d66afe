"""Seedable faults of the emulated board, as a table: what each breaks, where, which requirements must notice.

A fault replaces one or two points of `hooks.Hooks` by a broken form. It is chosen by name, with parameters
as ``name:key=value`` (several joined by commas). The copying API keeps private memory that is not cached,
and faults that spoil a result leave it alone where a real fault would strike zero copy only: a broken
oracle would hide them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from pytest_rknpu.agent.abi import CoreMask, MemorySyncMode
from pytest_rknpu.emulator.choices import CHOICES
from pytest_rknpu.emulator.hooks import Bytes, Hooks, OutputWrite, Range, RootFacts, SyncStep
from pytest_rknpu.emulator.memory import LINE_BYTES
from pytest_rknpu.errors import ConfigurationError

Parameters = Mapping[str, str]
Install = Callable[[Hooks, Parameters], Hooks]

_TO_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_TO_DEVICE
_FROM_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_FROM_DEVICE
_BIDIRECTIONAL = MemorySyncMode.RKNN_MEMORY_SYNC_BIDIRECTIONAL


@dataclass(frozen=True)
class Fault:
    """One way in which a board can be broken.

    ``layer`` is who is at fault: cache, driver, runtime, hardware or system; "choice" where nobody is.
    ``requirements`` are ids of the catalogue of which each must turn red on a board that can show it.
    ``parameters`` are the choices by key, the default first.
    """

    name: str
    layer: str
    description: str
    requirements: tuple[str, ...]
    install: Install
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


def _drop(operation: str) -> Install:
    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def steps(mode: int, covered: Range) -> list[SyncStep]:
            return [step for step in hooks.sync_steps(mode, covered) if step.operation != operation]

        return replace(hooks, sync_steps=steps)

    return install


def _swap_directions(hooks: Hooks, _: Parameters) -> Hooks:
    swapped = {int(_TO_DEVICE): int(_FROM_DEVICE), int(_FROM_DEVICE): int(_TO_DEVICE)}

    def steps(mode: int, covered: Range) -> list[SyncStep]:
        return hooks.sync_steps(swapped.get(mode, mode), covered)

    return replace(hooks, sync_steps=steps)


def _halve_bidirectional(hooks: Hooks, parameters: Parameters) -> Hooks:
    side = _TO_DEVICE if parameters["does"] == "to-device" else _FROM_DEVICE

    def steps(mode: int, covered: Range) -> list[SyncStep]:
        return hooks.sync_steps(int(side) if mode == _BIDIRECTIONAL else mode, covered)

    return replace(hooks, sync_steps=steps)


def _miss_last_line(hooks: Hooks, _: Parameters) -> Hooks:
    def steps(mode: int, covered: Range) -> list[SyncStep]:
        last_line = (covered.end - 1) // LINE_BYTES * LINE_BYTES
        return hooks.sync_steps(mode, replace(covered, end=max(covered.start, last_line)))

    return replace(hooks, sync_steps=steps)


def _ignore_offset(hooks: Hooks, _: Parameters) -> Hooks:
    def steps(mode: int, covered: Range) -> list[SyncStep]:
        shifted = Range(covered.start - covered.offset, covered.end - covered.offset, 0)
        return hooks.sync_steps(mode, shifted)

    return replace(hooks, sync_steps=steps)


def _write_back_late(hooks: Hooks, _: Parameters) -> Hooks:
    cache = replace(hooks.cache, cleaning_clears_dirty=False, writes_back_after_run=True)
    return replace(hooks, cache=cache)


def _lose_edge_neighbours(hooks: Hooks, _: Parameters) -> Hooks:
    cache = replace(hooks.cache, edges_are_cleaned=False)
    return replace(hooks, cache=cache, accepts_import_at=lambda offset: True)


def _skip_run_flush(hooks: Hooks, parameters: Parameters) -> Hooks:
    missing = {"both": ("inputs", "outputs")}.get(parameters["side"], (parameters["side"],))
    return replace(hooks, run_maintains=lambda side: side not in missing and hooks.run_maintains(side))


def _spoil_zero_copy(
    spoil: Callable[[OutputWrite, list[tuple[int, Bytes]]], list[tuple[int, Bytes]]],
) -> Install:
    """A fault that changes what a run writes to zero-copy outputs."""

    def install(hooks: Hooks, _: Parameters) -> Hooks:
        def writes(request: OutputWrite) -> list[tuple[int, Bytes]]:
            sound = hooks.output_writes(request)
            return spoil(request, sound) if request.zero_copy else sound

        return replace(hooks, output_writes=writes)

    return install


def _previous_frame(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    before = request.memo.get(request.index, sound)
    request.memo[request.index] = sound
    return before


def _scratch_in_output(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    # It differs from run to run, so that a reference made by zero copy too (mini runtime) does not agree.
    scratch = ~request.internal[: min(LINE_BYTES, len(request.data))] + np.uint8(request.run_number % 256)
    return [*sound, (0, scratch)]


def _unwritten_end(request: OutputWrite, sound: list[tuple[int, Bytes]]) -> list[tuple[int, Bytes]]:
    return [(offset, data[: max(len(data) - LINE_BYTES, 0)]) for offset, data in sound]


def _core_dependent(hooks: Hooks, _: Parameters) -> Hooks:
    single = {int(CoreMask.RKNN_NPU_CORE_AUTO), int(CoreMask.RKNN_NPU_CORE_0)}

    def writes(request: OutputWrite) -> list[tuple[int, Bytes]]:
        if request.core_mask in single:
            return hooks.output_writes(request)
        differing = request.data.copy()
        differing[::LINE_BYTES] ^= 1
        return hooks.output_writes(replace(request, data=differing))

    return replace(hooks, output_writes=writes)


def _scribble(hooks: Hooks, _: Parameters) -> Hooks:
    def writes(weights: Bytes, run_number: int) -> list[tuple[int, Bytes]]:
        if not len(weights):
            return []
        position = run_number * 97 % len(weights)
        return [(position, weights[position : position + 1] ^ np.uint8(0x55))]

    return replace(hooks, weight_writes=writes)


def _crash(hooks: Hooks, _: Parameters) -> Hooks:
    def reject() -> None:
        ctypes.string_at(0)  # reads address 0, as a library does that checks nothing

    return replace(hooks, reject_argument=reject)


def _log_error(hooks: Hooks, _: Parameters) -> Hooks:
    line = "REGTASK: The bit width of field value exceeds the limit, target: 0x1001, value: 0xffff"
    return replace(hooks, run_error_line=lambda: line)


def _tight_copying_rows(hooks: Hooks, _: Parameters) -> Hooks:
    return replace(hooks, copying_form=lambda form: replace(form, pitch=0))


def _set(**fields: object) -> Install:
    """A fault that is one changed field of the hooks."""
    # The keys are Hooks' own fields; the tests install every fault.
    return lambda hooks, _: replace(hooks, **fields)  # type: ignore[arg-type]


_TABLE = (
    Fault(
        "sync-to-device-dropped",
        "driver",
        "Cache maintenance to the device does nothing: the NPU reads what was in memory before",
        ("SYNC-01", "SYNC-06", "SYNC-08"),
        _drop("clean"),
    ),
    Fault(
        "sync-from-device-dropped",
        "driver",
        "Cache maintenance from the device does nothing: the CPU reads what it had cached before",
        ("SYNC-02", "SYNC-08"),
        _drop("invalidate"),
    ),
    Fault(
        "sync-directions-swapped",
        "driver",
        "To device invalidates and from device cleans",
        ("SYNC-01", "SYNC-02", "SYNC-08"),
        _swap_directions,
    ),
    Fault(
        "sync-bidirectional-one-side",
        "driver",
        "BIDIRECTIONAL does one direction only",
        ("SYNC-03",),
        _halve_bidirectional,
        {"does": ("to-device", "from-device")},
    ),
    Fault(
        "sync-last-line-missing",
        "driver",
        "Cache maintenance leaves out the last line of its range",
        ("SYNC-05", "SYNC-06"),
        _miss_last_line,
    ),
    Fault(
        "sync-offset-ignored",
        "driver",
        "Cache maintenance of a part of a memory starts at the whole memory's beginning",
        ("MEM-10",),
        _ignore_offset,
    ),
    Fault(
        "late-write-back",
        "cache",
        "Cleaned lines stay dirty and are written back again after the run, over its result",
        ("SYNC-09",),
        _write_back_late,
    ),
    Fault(
        "edge-neighbours-lost",
        "driver",
        "Imports may begin within a line, and invalidating one drops the neighbours' bytes of that line",
        ("SYNC-07",),
        _lose_edge_neighbours,
    ),
    Fault(
        "run-flush-missing",
        "runtime",
        "rknn_run does not maintain the caches of bound memories, although no flag asked for that",
        ("SYNC-04",),
        _skip_run_flush,
        {"side": ("both", "inputs", "outputs")},
    ),
    Fault(
        "non-cacheable-is-cached",
        "driver",
        "RKNN_FLAG_MEMORY_NON_CACHEABLE is ignored: the memory is cached",
        ("SYNC-10",),
        _set(is_coherent=lambda alloc_flags: False),
    ),
    Fault(
        "stale-previous-frame",
        "runtime",
        "A zero-copy run hands out the result of the run before",
        ("SYNC-02", "SYNC-08"),
        _spoil_zero_copy(_previous_frame),
    ),
    Fault(
        "internal-overlaps-output",
        "runtime",
        "The end of a run uses the first line of the output's memory as scratch",
        ("SYNC-01", "MEM-02"),
        _spoil_zero_copy(_scratch_in_output),
    ),
    Fault(
        "undersized-internal-accepted",
        "runtime",
        "rknn_set_internal_mem takes a buffer that is too small; the run writes beyond its end",
        ("MEM-03",),
        _set(internal_fits=lambda given, needed: True),
    ),
    Fault(
        "weights-scribbled",
        "hardware",
        "Each zero-copy run changes a byte of the weights",
        ("SYNC-08",),
        _scribble,
    ),
    Fault(
        "dup-shares-activations",
        "runtime",
        "A context made by rknn_dup_context computes in its parent's internal buffer",
        ("MEM-11",),
        _set(duplicates_share_internal=True),
    ),
    Fault(
        "descriptors-leak",
        "runtime",
        "rknn_destroy_mem keeps the descriptor open",
        ("MEM-08",),
        _set(close_descriptor=lambda fd: None),
    ),
    Fault(
        "output-incomplete",
        "hardware",
        "The last line of a zero-copy output is not written",
        ("MEM-05",),
        _spoil_zero_copy(_unwritten_end),
    ),
    Fault(
        "core-mask-changes-result",
        "hardware",
        "Core masks other than AUTO and CORE_0 compute slightly different values",
        ("MEM-11",),
        _core_dependent,
    ),
    Fault(
        "bad-argument-crashes",
        "runtime",
        "rknn_mem_sync does not check its arguments: NULL or an unknown mode ends the process",
        ("SYNC-13",),
        _crash,
    ),
    Fault(
        "truncated-model-accepted",
        "runtime",
        "rknn_init takes a model whose end is missing",
        ("ERR-02",),
        _set(loads_truncated_models=True),
    ),
    Fault(
        "foreign-model-accepted",
        "runtime",
        "rknn_init takes a model that was compiled for another SoC",
        ("ERR-01",),
        _set(loads_foreign_models=True),
    ),
    Fault(
        "destroyed-context-accepted",
        "runtime",
        "Calls with a destroyed context succeed",
        ("ERR-04",),
        _set(serves_destroyed_contexts=True),
    ),
    Fault(
        "error-line-with-success",
        "runtime",
        "rknn_run logs an error and returns RKNN_SUCC",
        ("VER-05",),
        _log_error,
    ),
    Fault(
        "copying-ignores-stride",
        "runtime",
        "rknn_inputs_set lays rows out without the padding that the NPU expects",
        ("MEM-09",),
        _tight_copying_rows,
    ),
    Fault(
        "npu-node-missing",
        "system",
        "The driver has no DRM node: no entry of /sys/class/drm belongs to it",
        ("VER-04",),
        lambda hooks, _: replace(hooks, root=replace(hooks.root, has_npu_node=False)),
    ),
    Fault(
        "wrong-device-tree",
        "system",
        "The device tree names another SoC",
        ("VER-02",),
        lambda hooks, _: replace(hooks, root=RootFacts(hooks.root.has_npu_node, "rockchip,rk3399")),
    ),
)

_CHOSEN = tuple(Fault(one.name, "choice", one.description, (), _set(**one.hooks)) for one in CHOICES)

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in (*_TABLE, *_CHOSEN)})
"""Every fault by its name, and `choices`, which break nothing."""


def parse_faults(chosen: Sequence[str]) -> Hooks:
    """The hooks of a board with the ``chosen`` faults ("name:key=value,..."). Raises ConfigurationError."""
    hooks = Hooks()
    for text in chosen:
        name, _, options = text.partition(":")
        fault = FAULTS.get(name)
        if fault is None:
            raise ConfigurationError(f"unknown fault {name!r}; known: {', '.join(sorted(FAULTS))}")
        hooks = fault.install(hooks, _parameters(fault, options))
    return hooks


def _parameters(fault: Fault, options: str) -> Parameters:
    """The fault's parameters with ``options`` ("key=value,...") over the defaults."""
    values = {key: choices[0] for key, choices in fault.parameters.items()}
    for option in filter(None, options.split(",")):
        key, _, value = option.partition("=")
        if value not in fault.parameters.get(key, ()):
            known = "; ".join(f"{name}={'|'.join(choices)}" for name, choices in fault.parameters.items())
            raise ConfigurationError(
                f"fault {fault.name!r} has no {option!r}; it takes {known or 'no parameters'}"
            )
        values[key] = value
    return values
