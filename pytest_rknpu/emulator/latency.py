"""How an emulated board takes its time, by name: for trying the latency suite out, never for a statement
about it.

Without a latency model a run takes as long as onnxruntime takes on this host, which means nothing, and
nothing about time is judged. With one (an option of the run, or a key of boards.toml) each run really waits
until its time is up, so that clocks, loops, statistics and verdicts are tried as on silicon; results carry
the model's name.

The time of a run in ms is (base + per_layer * layers), times a factor for each thing that may happen to it:
jitter (log-normal, correlated from run to run if asked), a slow mode, a long tail, drift, throttling, the
core mask, an input that it has seen before. The first run of a context and ``rknn_init`` take longer.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pytest_rknpu.agent.abi import MemorySyncMode

_SPIN_NS = 300_000
_PRIORITY = 10

_BOTH = int(MemorySyncMode.RKNN_MEMORY_SYNC_BIDIRECTIONAL)
_ONE_WAY_AND_BOTH = MappingProxyType({1: 0.2, 2: 0.2, _BOTH: 0.35})

THROTTLE_FILE = "sys/class/thermal/cooling_device0/cur_state"
"""Of the emulated sysroot."""


@dataclass(frozen=True)
class LatencyModel:
    """Times in ms; shares and factors are plain numbers. ``shows`` is what the suite has to say about it."""

    shows: str
    base: float = 6.0
    per_layer: float = 0.2
    init: float = 15.0
    first: float = 10.0
    jitter: float = 0.01
    correlation: float = 0.0
    mode_share: float = 0.0
    mode_factor: float = 1.0
    tail_share: float = 0.0
    tail_factor: float = 1.0
    tail_every: int | None = None
    drift_per_run: float = 0.0
    throttle_after: int | None = None
    throttle_after_s: float = math.inf
    throttle_factor: float = 1.0
    known_input_factor: float = 1.0
    several_cores_factor: float = 0.8
    perf_run_factor: float = 0.9
    sync_ms_per_mib: Mapping[int, float] = field(default_factory=lambda: _ONE_WAY_AND_BOTH, hash=False)
    governor: str = "userspace"


LATENCY_MODELS: Mapping[str, LatencyModel] = MappingProxyType(
    {
        "steady": LatencyModel("stable: every latency item ends in pass or fail, as the budget has it"),
        "two-modes": LatencyModel("LAT-05: two modes", mode_share=0.5, mode_factor=1.2),
        "tail": LatencyModel("LAT-05: outliers", tail_share=0.04, tail_factor=3.0),
        "rare-tail": LatencyModel("LAT-05: one outlier in 200", tail_every=200, tail_factor=3.0),
        "correlated": LatencyModel("LAT-05: autocorrelation", jitter=0.1, correlation=0.9),
        "drift": LatencyModel("LAT-05: drift", drift_per_run=0.004),
        "throttle": LatencyModel("LAT-05: throttled", throttle_after=15, throttle_factor=1.3),
        "late-throttle": LatencyModel(
            "LAT-05: throttled after 30 s", throttle_after_s=30.0, throttle_factor=1.3
        ),
        "wandering": LatencyModel("LAT-05: clocks not pinned", governor="rknpu_ondemand"),
        "cached": LatencyModel("LAT-06: an input seen before is faster", known_input_factor=0.6),
        "slow-cores": LatencyModel("LAT-03: several cores are slower", several_cores_factor=1.4),
        "long-perf-run": LatencyModel("LAT-04: PERF_RUN longer than the run", perf_run_factor=1.5),
        "slow": LatencyModel("LAT-01: every run is slow", base=26.0),
        "slower": LatencyModel("LAT-08: every run is slower than before", base=6.8),
        "slow-start": LatencyModel("LAT-02: rknn_init and the first run are slow", init=240.0, first=200.0),
        "slow-sync": LatencyModel(
            "SYNC-15: one direction costs more", sync_ms_per_mib={1: 0.2, 2: 1.5, 3: 0.4}
        ),
    }
)
"""By name: what ``--rknpu-latency-model`` and the key ``latency_model`` take."""


class Pace:
    """Makes the calls of one process wait. ``root`` is the emulated sysroot, where throttling shows."""

    def __init__(self, model: LatencyModel, seed: int, root: str | None) -> None:
        # Fresh processes of one board must differ, as they do on silicon.
        self._random = np.random.default_rng([seed, os.getpid()])
        self._model = model
        self._root = root
        self._runs = 0
        self._first_run = math.inf
        self._jitter = float(self._random.standard_normal())
        self._seen: set[tuple[int, int]] = set()
        self._started: set[int] = set()
        self._lock = threading.Lock()
        _raise_priority()

    def end_of_run(self, started_ns: int, context: int, layers: int, core_mask: int, inputs: int) -> int:
        """Wait until a run is over; returns what PERF_RUN says of it, in microseconds.

        ``started_ns`` is of ``time.perf_counter_ns``, ``inputs`` a fingerprint of the input bytes.
        """
        with self._lock:
            milliseconds = self._run(context, layers, core_mask, inputs)
        _wait_until(started_ns + int(milliseconds * 1e6))
        return int((time.perf_counter_ns() - started_ns) * self._model.perf_run_factor / 1000)

    def end_of_init(self, started_ns: int) -> None:
        """Wait until ``rknn_init`` is over."""
        _wait_until(started_ns + int(self._model.init * 1e6))

    def end_of_sync(self, started_ns: int, mode: int, size: int) -> None:
        """Wait until ``rknn_mem_sync`` of ``size`` bytes is over."""
        _wait_until(started_ns + int(self._model.sync_ms_per_mib[mode] * size / 2**20 * 1e6))

    def _run(self, context: int, layers: int, core_mask: int, inputs: int) -> float:
        model, draw = self._model, self._random
        self._runs += 1
        rho = model.correlation
        self._jitter = rho * self._jitter + math.sqrt(1 - rho * rho) * float(draw.standard_normal())
        factor = math.exp(model.jitter * self._jitter) * (1 + model.drift_per_run * self._runs)
        if draw.random() < model.mode_share:
            factor *= model.mode_factor
        if draw.random() < model.tail_share or self._runs % (model.tail_every or math.inf) == 0:
            factor *= model.tail_factor
        if self._is_hot():
            factor *= model.throttle_factor
            self._show_throttling()
        if core_mask & (core_mask - 1):  # more than one bit: more than one core
            factor *= model.several_cores_factor
        if (context, inputs) in self._seen:
            factor *= model.known_input_factor
        self._seen = {(context, inputs)} | {entry for entry in self._seen if entry[0] != context}
        extra = 0.0 if context in self._started else model.first
        self._started.add(context)
        return (model.base + model.per_layer * layers) * factor + extra

    def _is_hot(self) -> bool:
        """After so many runs, or so long after the first of this process."""
        now = time.monotonic()
        self._first_run = min(self._first_run, now)
        runs = self._model.throttle_after
        hot = runs is not None and self._runs > runs
        return hot or now - self._first_run > self._model.throttle_after_s

    def _show_throttling(self) -> None:
        if self._root is not None:
            with contextlib.suppress(OSError):
                Path(self._root, THROTTLE_FILE).write_text("1\n")


def _wait_until(deadline_ns: int) -> None:
    """Sleep, then spin the last bit."""
    left = deadline_ns - time.perf_counter_ns()
    if left > _SPIN_NS:
        time.sleep((left - _SPIN_NS) / 1e9)
    while time.perf_counter_ns() < deadline_ns:
        pass


def _raise_priority() -> None:
    """Let this thread go before all others, so that what else runs on this host does not show in its times.

    Without the right to do so (root, or CAP_SYS_NICE) it shows: such samples may be inconclusive.
    """
    with contextlib.suppress(PermissionError):
        # Not for the processes that this one starts: a load process would keep everybody else from running.
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
