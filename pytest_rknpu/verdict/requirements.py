"""The catalogue of requirements. Ids are stable: suites mark them, reports group by them, waivers name them.

"Guide" is the RKNN SDK V2.5.0 user guide; the chapters with their setups are described in ``docs/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_rknpu.errors import ConfigurationError


@dataclass(frozen=True)
class Requirement:
    """One thing that an NPU stack has to do. ``chapter`` is the part of the catalogue, ``text`` its words."""

    id: str
    chapter: str
    text: str


@dataclass(frozen=True)
class Chapter:
    """What requirements of a chapter are about; ``guide`` is where the user guide speaks of it, or None."""

    title: str
    guide: str | None = None


CHAPTERS: Mapping[str, Chapter] = MappingProxyType(
    {
        "SYNC": Chapter("cache synchronisation", "4.1.6"),
        "MEM": Chapter("memory", 'zero copy and memory; "local model memory evaluation" for RK3588'),
        "SPARSE": Chapter("sparse inference", "4.1.7"),
        "ACC": Chapter("accuracy"),
        "LAT": Chapter("latency (hardware only, LAT-09 apart)"),
        "VER": Chapter("versions and identity"),
        "ERR": Chapter(
            "bad input: an error code and a board that still works, each in a child process there"
        ),
    }
)
"""The chapters of the catalogue in its order, by the letters that their ids begin with."""

_TEXTS: Mapping[str, str] = {
    "SYNC-01": "after CPU writes and rknn_mem_sync(TO_DEVICE) the NPU reads the new bytes",
    "SYNC-02": "after a run and rknn_mem_sync(FROM_DEVICE) the CPU reads the new bytes",
    "SYNC-03": "BIDIRECTIONAL (enum RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3) does both",
    "SYNC-04": "without the flags, rknn_run alone keeps inputs and outputs consistent",
    "SYNC-05": "every cache line is covered",
    "SYNC-06": "partial lines are covered",
    "SYNC-07": "neighbours survive",
    "SYNC-08": "ownership can flip for ever",
    "SYNC-09": "a dirty output line cannot come back over the NPU's result",
    "SYNC-10": "non-cacheable memory is coherent without syncs",
    "SYNC-11": "imported memory (dma-buf fd) is synced too, or the call fails",
    "SYNC-12": "the context argument: NULL is accepted except on RV1103/RV1106",
    "SYNC-13": "bad arguments give an error code, not a crash",
    "SYNC-14": "control: omitted syncs",
    "SYNC-15": "one direction costs no more than both",
    "SYNC-16": "random legal programs agree with a reference memory model",
    "MEM-01": "RKNN_QUERY_MEM_SIZE reports weight, internal, DMA and SRAM sizes; they agree with the "
    "toolkit's build log and, where reachable, eval_memory(); each within its budget",
    "MEM-02": "two models run in turn on one internal buffer (RKNN_FLAG_MEM_ALLOC_OUTSIDE / "
    "INTERNAL_ALLOC_OUTSIDE, rknn_set_internal_mem) of the larger size: A, poison, B, poison, "
    "A equal their isolated runs",
    "MEM-03": "an internal buffer that is too small is refused, or canaries show the overrun: never "
    "silent corruption",
    "MEM-04": "canaries around input, output, internal and weight memory stay whole",
    "MEM-05": "outputs are fully written: prefills 0xA5 and 0x5A end in the same bytes (padding excluded)",
    "MEM-06": "weight memory set from outside; a context made by rknn_dup_context and one sharing "
    "weights (SHARE_WEIGHT_MEM, remove_weight) equal a full one",
    "MEM-07": "destroy A, refill its memory, run B: right; destroying the parent leaves a duplicate working",
    "MEM-08": "n create/destroy and init/destroy rounds bring back file descriptors, mappings and DMA bytes",
    "MEM-09": "zero copy equals the copying API for native (NC1HWC2), NHWC and pass-through layouts, "
    "and where w_stride differs from width",
    "MEM-10": "dma-buf import with an offset equals own memory",
    "MEM-11": "contexts in several threads, processes and on several cores do not mix results",
    "MEM-12": "the compiler's memory plan has no two live tensors in one place, and its end is the "
    "internal size (from the toolkit's build log)",
    "MEM-13": "freshly allocated memory: zeroed or not is recorded (information leak)",
    "MEM-14": "weight memory given from outside (MEM_ALLOC_OUTSIDE) is filled by the library on the CPU "
    "and not synced by it (seen with 1.5.2 and 1.6.0): with the application's TO_DEVICE the "
    "result is right; a control without it is measured",
    "SPARSE-01": "for each SoC and each of the four modes (0: 4:2 along input channels, 1: 4:2 along "
    "output channels, 2 and 3: 16:4) the build log says that eligible convolutions run sparse "
    "(SparseRatio)",
    "SPARSE-02": "layers outside the limits (channels not a multiple of 32, group > 1, not int8, not 2-D) "
    "stay dense, and are named",
    "SPARSE-03": "sparse_infer on a SoC that has none is refused with a clear message",
    "SPARSE-04": "the same pruned weights with sparse_infer on and off give the same result within a "
    "declared quantisation tolerance (the 2.5.0 simulator differs by up to 3 steps in sparse "
    "layers; dense ones are exact)",
    "SPARSE-05": "pruned against dense on labelled data: top-1 flips judged by exact McNemar and a "
    "declared margin",
    "SPARSE-06": "dense weights with sparse_infer=True are not pruned silently",
    "SPARSE-07": "sparse is not slower and its weights are smaller: interleaved A/B on hardware; weight "
    "sizes and predicted cycles everywhere (small layers may grow: say so)",
    "SPARSE-08": "repeated runs give the same bytes (500 runs)",
    "ACC-01": "board against float reference, per output: cosine, SQNR, max error, bias, top-1",
    "ACC-02": "board against simulator (the quantised model): same metrics, tighter",
    "ACC-03": "general API against RKNN-Toolkit-Lite2 on the same board: equal bytes",
    "ACC-04": "each core mask against core 0: equal bytes",
    "ACC-05": "mean/std, channel order and layout are applied once",
    "ACC-06": "operators that fell to the CPU are counted and named; more than the model declares is a fail",
    "ACC-07": "a failing comparison says where: by channel group, row and cache line, with offset maps",
    "LAT-01": "p50/p95/p99 within budget, decided by exact binomial tails with n fixed in advance",
    "LAT-02": "first inference and rknn_init within budget",
    "LAT-03": "core masks: several cores are not slower than one",
    "LAT-04": "RKNN_QUERY_PERF_RUN is not longer than the wall time of the run",
    "LAT-05": "the run was stable: no drift, no two modes, no throttling, clocks pinned and recorded; "
    "else inconclusive",
    "LAT-06": "same input against varied inputs: more than 10 % faster means caching, a fail",
    "LAT-07": "latency under CPU and memory load, measured",
    "LAT-08": "no regression against the stored baseline of another version set",
    "LAT-09": "the compiler's own predicted cycles (DDR/NPU/total, from the build log) have not grown "
    "against the stored baseline of the same model on another toolkit version",
    "LAT-10": "cold caches beside warm ones (the CPU and the NPU's memory traffic flushed between "
    "runs), measured",
    "VER-01": "BSP (os-release, kernel, device tree, vendor release files), driver, runtime (API and "
    "library), toolkit, model compiler and, where used, rknn_server and Lite2 versions are "
    'recorded, each as value, "absent" or "probe blocked" with the reason',
    "VER-02": "the board is the SoC that boards.toml says (device-tree compatible, any NUL-separated entry)",
    "VER-03": "the combination is known to work: a too old driver or a model newer than the runtime is "
    "named before it fails obscurely",
    "VER-04": "the NPU device is usable, found by its DRM driver name, not by a fixed number or a symlink",
    "VER-05": "no E-line in the runtime's log or new kernel error during a test; the NPU was idle and "
    "healthy before it, and it caused no soft reset that it did not declare",
    "VER-06": "models stored from older toolkit versions (2.2.0, 2.3.0, 2.3.2, 2.5.0) still load and "
    "give the same bytes on this runtime: the matrix of stored model against runtime",
    "ERR-01": "a model for another SoC gives an error code and a board that still works",
    "ERR-02": "a truncated, empty or random model gives an error code and a board that still works",
    "ERR-03": "wrong input size, type or index gives an error code and a board that still works",
    "ERR-04": "use of a destroyed context or memory gives an error code and a board that still works",
    "ERR-05": "an unsupported core mask is refused, or the silent fall-back is named",
    "ERR-06": "lifetimes: memory exported, then its context destroyed; memory destroyed while bound; "
    "submit after destroy; two processes on one imported buffer: an error code and a board "
    "that still works",
}

REQUIREMENTS: Mapping[str, Requirement] = MappingProxyType(
    {id: Requirement(id, id.rpartition("-")[0], text) for id, text in _TEXTS.items()}
)
"""Every requirement by its id, in the catalogue's order."""


def require_known(ids: Iterable[object], where: str) -> tuple[str, ...]:
    """The ids, checked. Raises ConfigurationError that names ``where`` and the nearest known id."""
    known = []
    for id in ids:
        if not isinstance(id, str) or id not in REQUIREMENTS:
            import difflib  # here, as every import counts in runs that have nothing to do with boards

            near = difflib.get_close_matches(str(id).upper(), REQUIREMENTS, n=1, cutoff=0.5)
            hint = f" (did you mean {near[0]}?)" if near else f"; chapters: {', '.join(CHAPTERS)}"
            raise ConfigurationError(f"{where}: there is no requirement {id!r}{hint}")
        known.append(id)
    return tuple(known)
