"""Seedable faults of the emulated board, as a table: what each breaks, where, which requirements must notice.

A fault replaces one or two points of `hooks.Hooks` by a broken form. It is chosen by name, with parameters
as ``name:key=value`` (several joined by commas). The copying API keeps private memory that is not cached,
and faults that spoil a result leave it alone where a real fault would strike zero copy only: a broken
oracle would hide them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from pytest_rknpu.emulator import breaking, losing
from pytest_rknpu.emulator.breaking import Install, Parameters
from pytest_rknpu.emulator.choices import CHOICES
from pytest_rknpu.emulator.hooks import Hooks, RootFacts
from pytest_rknpu.errors import ConfigurationError


@dataclass(frozen=True)
class Fault:
    """One way in which a board can be broken.

    ``layer`` is who is at fault: cache, driver, runtime, hardware or system; "choice" where nobody is, "loss"
    where the board is lost by it, so that nothing can be judged.
    ``requirements`` are ids of the catalogue of which each must turn red on a board that can show it.
    ``parameters`` are the choices by key, the default first. ``effort`` is the least one (``--rknpu-effort``)
    at which it must be caught: what strikes seldom needs many rounds.
    """

    name: str
    layer: str
    description: str
    requirements: tuple[str, ...]
    install: Install
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    effort: str = "quick"


_TABLE = (
    Fault(
        "sync-to-device-dropped",
        "driver",
        "Cache maintenance to the device does nothing: the NPU reads what was in memory before",
        ("SYNC-01", "SYNC-06", "SYNC-08", "SYNC-16"),
        breaking.drop("clean"),
    ),
    Fault(
        "sync-from-device-dropped",
        "driver",
        "Cache maintenance from the device does nothing: the CPU reads what it had cached before",
        ("SYNC-02", "SYNC-08", "SYNC-16"),
        breaking.drop("invalidate"),
    ),
    Fault(
        "sync-directions-swapped",
        "driver",
        "To device invalidates and from device cleans",
        ("SYNC-01", "SYNC-02", "SYNC-08"),
        breaking.swap_directions,
    ),
    Fault(
        "sync-bidirectional-one-side",
        "driver",
        "BIDIRECTIONAL does one direction only",
        ("SYNC-03",),
        breaking.halve_bidirectional,
        {"does": ("to-device", "from-device")},
    ),
    Fault(
        "sync-last-line-missing",
        "driver",
        "Cache maintenance leaves out the last line of its range",
        ("SYNC-05", "SYNC-06"),
        breaking.miss_last_line,
    ),
    Fault(
        "sync-offset-ignored",
        "driver",
        "Cache maintenance of a part of a memory starts at the whole memory's beginning",
        ("MEM-10",),
        breaking.ignore_offset,
    ),
    Fault(
        "sync-range-rounded-down",
        "driver",
        "Cache maintenance covers whole lines only: what lies behind the last whole one is left out",
        ("SYNC-06",),
        breaking.round_range_down,
    ),
    Fault(
        "sync-stops-at-16-kib",
        "driver",
        "Cache maintenance of a large memory ends after 16 KiB",
        ("SYNC-05",),
        breaking.stop_at(16384),
    ),
    Fault(
        "sync-hole-at-1-kib",
        "driver",
        "Cache maintenance leaves out the line at 1 KiB",
        ("SYNC-01", "SYNC-02", "SYNC-05"),
        breaking.leave_out_line(1024),
    ),
    Fault(
        "sync-of-another-memory",
        "driver",
        "rknn_mem_sync maintains the caches of another memory of the context",
        ("SYNC-01", "SYNC-02", "SYNC-08"),
        breaking.sync_another_memory,
    ),
    Fault(
        "sync-one-in-500-lost",
        "driver",
        "Every 500th cache maintenance does nothing",
        ("SYNC-08",),
        breaking.lose_one_sync_in(500),
        effort="normal",
    ),
    Fault(
        "sync-of-imports-ignored",
        "driver",
        "rknn_mem_sync of memory made from a descriptor returns RKNN_SUCC and does nothing",
        ("SYNC-11", "MEM-10"),
        breaking.pass_over_imports,
    ),
    Fault(
        "late-write-back",
        "cache",
        "Cleaned lines stay dirty and are written back again after the run, over its result",
        ("SYNC-09",),
        breaking.write_back_late,
    ),
    Fault(
        "edge-neighbours-lost",
        "driver",
        "Imports may begin within a line, and invalidating one drops the neighbours' bytes of that line",
        ("SYNC-07",),
        breaking.lose_edge_neighbours,
    ),
    Fault(
        "run-flush-missing",
        "runtime",
        "rknn_run does not maintain the caches of bound memories, although no flag asked for that",
        ("SYNC-04",),
        breaking.skip_run_flush,
        {"side": ("both", "inputs", "outputs")},
    ),
    Fault(
        "non-cacheable-is-cached",
        "driver",
        "RKNN_FLAG_MEMORY_NON_CACHEABLE is ignored: the memory is cached",
        ("SYNC-10",),
        breaking.set_fields(is_coherent=lambda alloc_flags: False),
    ),
    Fault(
        "stale-previous-frame",
        "runtime",
        "A zero-copy run hands out the result of the run before",
        ("SYNC-02", "SYNC-08"),
        breaking.spoil_zero_copy(breaking.previous_frame),
    ),
    Fault(
        "one-result-in-1000-stale",
        "runtime",
        "Every 1,000th zero-copy run hands out the result of the run before",
        ("SYNC-08",),
        breaking.spoil_zero_copy(breaking.previous_frame_once_in(1000)),
        effort="normal",
    ),
    Fault(
        "internal-overlaps-output",
        "runtime",
        "The end of a run uses the first line of the output's memory as scratch",
        ("SYNC-01", "MEM-02"),
        breaking.spoil_zero_copy(breaking.scratch_in_output),
    ),
    Fault(
        "undersized-internal-accepted",
        "runtime",
        "rknn_set_internal_mem takes a buffer that is too small; the run writes beyond its end",
        ("MEM-03",),
        breaking.set_fields(internal_fits=lambda given, needed: True),
    ),
    Fault(
        "weights-scribbled",
        "hardware",
        "Each zero-copy run changes a byte of the weights",
        ("SYNC-08",),
        breaking.scribble,
    ),
    Fault(
        "dup-shares-activations",
        "runtime",
        "A context made by rknn_dup_context computes in its parent's internal buffer",
        ("MEM-11",),
        breaking.set_fields(duplicates_share_internal=True),
    ),
    Fault(
        "dup-moves-weights",
        "runtime",
        "rknn_dup_context moves the weights; its parent goes on with what is left where they were",
        ("MEM-06", "MEM-07"),
        breaking.set_fields(duplicates_move_weights=True),
    ),
    Fault(
        "given-weights-not-filled",
        "runtime",
        "rknn_set_weight_mem does not put the weights into the memory",
        ("MEM-06", "MEM-14"),
        breaking.set_fields(fills_given_weights=False),
    ),
    Fault(
        "internal-size-under-reported",
        "runtime",
        "RKNN_QUERY_MEM_SIZE reports three quarters of the internal memory",
        ("MEM-02",),
        breaking.set_fields(reported_internal=lambda size: size * 3 // 4 // 64 * 64),
    ),
    Fault(
        "row-stride-wrong",
        "runtime",
        "Queries report the width as w_stride where rows are padded",
        ("MEM-09",),
        breaking.set_fields(reported_row=lambda pitch, width: width if pitch else 0),
    ),
    Fault(
        "descriptors-leak-on-errors",
        "runtime",
        "Each call that gives an error code leaves a descriptor open",
        ("MEM-08",),
        breaking.leak_descriptors_of_refusals,
    ),
    Fault(
        "descriptors-leak",
        "runtime",
        "rknn_destroy_mem keeps the descriptor open",
        ("MEM-08",),
        breaking.set_fields(close_descriptor=lambda fd: None),
    ),
    Fault(
        "output-incomplete",
        "hardware",
        "The last line of a zero-copy output is not written",
        ("MEM-05",),
        breaking.spoil_zero_copy(breaking.unwritten_end),
    ),
    Fault(
        "output-overrun",
        "hardware",
        "A zero-copy run writes a line of zeros behind the output's memory",
        ("MEM-04",),
        breaking.spoil_zero_copy(breaking.overrun),
    ),
    Fault(
        "core-mask-changes-result",
        "hardware",
        "Core masks other than AUTO and CORE_0 compute slightly different values",
        ("MEM-11", "ACC-04"),
        breaking.core_dependent,
    ),
    Fault(
        "core-mask-ignored",
        "runtime",
        "rknn_set_core_mask takes a core mask that the SoC has not, and runs on a core of its choice",
        ("ERR-05",),
        breaking.set_fields(unknown_core_mask="silent"),
    ),
    Fault(
        "destroyed-memory-accepted",
        "runtime",
        "rknn_run succeeds with a bound memory that was destroyed",
        ("ERR-06",),
        breaking.set_fields(serves_destroyed_memories=True),
    ),
    Fault(
        "import-destroy-frees-memory",
        "runtime",
        "rknn_destroy_mem of an import frees the memory itself: its bytes are somebody else's then",
        ("ERR-06",),
        breaking.set_fields(frees_what_was_imported=True),
    ),
    Fault(
        "null-context-refused",
        "runtime",
        "rknn_mem_sync refuses NULL as its context on a SoC where the guide allows it",
        ("SYNC-12",),
        breaking.set_fields(syncs_without_context=False),
    ),
    Fault(
        "input-size-unchecked",
        "runtime",
        "rknn_inputs_set takes a buffer that is too small for its input",
        ("ERR-03",),
        breaking.set_fields(checks_input_sizes=False),
    ),
    Fault(
        "bad-argument-crashes",
        "runtime",
        "rknn_mem_sync does not check its arguments: NULL or an unknown mode ends the process",
        ("SYNC-13",),
        breaking.crash,
    ),
    Fault(
        "truncated-model-accepted",
        "runtime",
        "rknn_init takes a model whose end is missing",
        ("ERR-02",),
        breaking.set_fields(loads_truncated_models=True),
    ),
    Fault(
        "foreign-model-accepted",
        "runtime",
        "rknn_init takes a model that was compiled for another SoC",
        ("ERR-01",),
        breaking.set_fields(loads_foreign_models=True),
    ),
    Fault(
        "destroyed-context-accepted",
        "runtime",
        "Calls with a destroyed context succeed",
        ("ERR-04",),
        breaking.set_fields(serves_destroyed_contexts=True),
    ),
    Fault(
        "error-line-with-success",
        "runtime",
        "rknn_run logs an error and returns RKNN_SUCC",
        ("VER-05",),
        breaking.log_error,
    ),
    Fault(
        "copying-ignores-stride",
        "runtime",
        "rknn_inputs_set lays rows out without the padding that the NPU expects",
        ("MEM-09",),
        breaking.tight_copying_rows,
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

_LOSING = (
    Fault("run-hangs", "loss", "A zero-copy run never returns", (), losing.hang, {"after": losing.RUNS}),
    Fault(
        "run-crashes", "loss", "The library dies in a zero-copy run", (), losing.crash, {"after": losing.RUNS}
    ),
)

_CHOSEN = tuple(
    Fault(one.name, "choice", one.description, (), breaking.set_fields(**one.hooks)) for one in CHOICES
)

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in (*_TABLE, *_LOSING, *_CHOSEN)})
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
