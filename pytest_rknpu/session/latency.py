"""Latency of one board for one test: pinned clocks, budgets, what disturbed it, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.inventory.budgets import find_budget
from pytest_rknpu.inventory.pinned_clocks import PINNED_CLOCKS
from pytest_rknpu.measure import Judgement, Rule, quantile_figures, quantile_name
from pytest_rknpu.measure.conditions import (
    CLOCK,
    DISTURBED_BY,
    UNDISTURBED,
    changes,
    clocks,
    cooling_devices,
    cpus_of_others,
    not_fixed,
    npu_load,
    used_by_others,
    without_node,
)
from pytest_rknpu.measure.quantiles import QUANTILES
from pytest_rknpu.session.timing import Comparison, Doubles, Timing

if TYPE_CHECKING:
    from pytest_rknpu.inventory.budget_table import Budget
    from pytest_rknpu.session.npu import Npu


@dataclass(frozen=True)
class Latency:
    """Timing on one board, and the ``budgets`` that hold for it.

    ``pinned`` tells of each clock what came of pinning it; empty without ``pin``.
    """

    npu: Npu
    budgets: tuple[Budget, ...]
    pinned: tuple[Mapping[str, Any], ...] = ()

    def budget(self, model: str, core_mask: str | None) -> Budget | None:
        """The ``[[budget]]`` for a model on this board, if there is one. ``core_mask``: the header's name."""
        return find_budget(self.budgets, model, core_mask)

    def disturbances(self, readings: Sequence[Mapping[str, Any]]) -> list[str]:
        """Why what was measured between these readings cannot be judged, in words."""
        reasons = changes(readings) + used_by_others(readings) + list(self._not_as_pinned(readings[0]))
        if self.npu.session.board.allow_unpinned:
            return reasons
        fixed = without_node(readings[0], self._immovable)
        failed = [clock for clock in self.pinned if not clock["pinned"] and clock["clock"] not in fixed]
        loose = [f"clock {clock['clock']} is not pinned: {clock['reason']}" for clock in failed]
        unsure = [f"clock not fixed: {sentence}" for sentence in not_fixed(readings[0], self._immovable)]
        return reasons + (loose or unsure)

    @property
    def _immovable(self) -> frozenset[str]:
        return PINNED_CLOCKS[self.npu.soc.name].immovable

    def _not_as_pinned(self, reading: Mapping[str, Any]) -> Iterator[str]:
        """A heat limit may take a clock away again, before anything is measured."""
        states = clocks(reading)
        for clock in self.pinned:
            found = states.get(clock["clock"], {}).get("hertz")
            if clock["pinned"] and found != clock["hertz"]:
                yield f"clock {clock['clock']} was pinned at {clock['hertz']} Hz and reads {found} Hz"

    def note_conditions(self, readings: Sequence[Mapping[str, Any]]) -> None:
        """Write down under which conditions was measured, what disturbed it, and what is allowed of them."""
        record, first, last = self.npu.record, readings[0], readings[-1]
        for name, state in clocks(first).items():
            record.measure(f"{CLOCK}{name}", _clock_in_words(state))
        for when, reading in (("before", first), ("after", last)):
            for zone in reading.get("thermal", {}).get("value") or []:
                if zone["millidegrees"] is not None:
                    name = f"temperature {zone['type']} ({zone['zone']}) {when}"
                    record.measure(name, zone["millidegrees"] / 1000, "C")
            load = reading.get("load", {}).get("value")
            if load is not None:
                record.measure(f"load {when}", load["minutes_1"], "processes")
            if "value" in reading.get("npu_load", {}):
                record.measure(f"NPU load {when}", npu_load(reading), "%")
        for device in cooling_devices(last):
            name = f"throttling by {device['type']} ({device['device']})"
            moves = device["transitions"]
            record.measure(f"{name}, state", "unknown" if device["state"] is None else device["state"])
            record.measure(f"{name}, moves so far", "not counted" if moves is None else moves)
        busy = cpus_of_others(readings)
        if busy is not None:
            record.measure("busy with others", busy, "CPUs")
        record.measure(DISTURBED_BY, "; ".join(self.disturbances(readings)) or UNDISTURBED)
        for name, reason in without_node(first, self._immovable).items():
            record.note(f"clock {name}: nothing moves it on {self.npu.soc.name} ({reason})")
        if self.npu.session.board.allow_unpinned:
            for sentence in not_fixed(first, self._immovable):
                record.note(f"judged although a clock may move (allow_unpinned): {sentence}")


def _clock_in_words(state: Mapping[str, Any]) -> str:
    hertz = state.get("hertz")
    return f"{state.get('governor')}, {hertz / 1e6:g} MHz" if hertz else "unknown"


@contextmanager
def pinned_clocks(npu: Npu) -> Iterator[tuple[Mapping[str, Any], ...]]:
    """The board's clocks pinned during the block, where boards.toml says ``pin``; what came of each.

    Raises BoardError where nobody can pin: then nothing was changed.
    """
    if not npu.session.board.pin:
        yield ()
        return
    for path in npu.session.clocks_recovered:
        npu.record.note(f"a session before left a clock pinned: {path}; put back at the start of this one")
    told = tuple(npu.session.pin_clocks())
    for clock in told:
        if not clock["pinned"]:
            npu.record.note(f"clock {clock['clock']} cannot be pinned: {clock['reason']}")
    try:
        yield told
    finally:
        if npu.session.alive:  # else the guardian on the board does it
            for problem in npu.session.unpin_clocks():
                npu.record.note(f"not put back: {problem}")


def record_quantiles(npu: Npu, processes: Sequence[Doubles], alpha: float, prefix: str = "") -> None:
    """Write down quantiles with their bounds at confidence 1 - alpha, and the extremes; all in ms."""
    for quantile in QUANTILES:
        figures = quantile_figures(processes, quantile, alpha)
        name = f"{prefix}{quantile_name(quantile)}"
        npu.record.measure(name, figures.value, "ms")
        npu.record.measure(f"{name} at least", figures.bounds.lower, "ms")
        npu.record.measure(f"{name} at most", figures.bounds.upper, "ms")
    samples = np.concatenate(processes)
    for name, value in (("fastest", samples.min()), ("slowest", samples.max()), ("mean", samples.mean())):
        npu.record.measure(f"{prefix}{name}", value, "ms")


def record_timing(latency: Latency, timing: Timing, alpha: float) -> None:
    """Write down a measurement: what was measured, figures, conditions and raw samples."""
    record = latency.npu.record
    record.measure("model", timing.model)
    record.measure("core mask", timing.core_mask or "none")
    record.measure("processes", len(timing.processes))
    record.measure("runs", sum(len(process.wall_ns) for process in timing.processes))
    record_quantiles(latency.npu, timing.milliseconds(), alpha)
    record.measure("binding per call", timing.no_op_us, "us")
    for name, key in (("rknn_init", "init_ns"), ("first inference", "first_ns")):
        record.measure(
            f"{name}, median", np.median([getattr(one, key) for one in timing.processes]) / 1e6, "ms"
        )
    asked = [sample for process in timing.processes for sample in process.perf_run_us if sample > 0]
    if asked:
        record.measure("PERF_RUN, median", np.median(asked) / 1000, "ms")
    latency.note_conditions(timing.readings)
    record.keep_samples("run", [process.wall_ns for process in timing.processes], "ns")


def record_comparison(latency: Latency, comparison: Comparison, rule: Rule) -> None:
    """Write down what interleaved calls took, each by its name."""
    for call in comparison.calls:
        processes = comparison.milliseconds(call)
        record_quantiles(latency.npu, processes, rule.alpha, prefix=f"{call} ")
        whole = [np.rint(samples * 1e6).astype(np.int64).tolist() for samples in processes]
        latency.npu.record.keep_samples(call, whole, "ns")
    latency.note_conditions(comparison.readings)


def require_within(npu: Npu, what: str, judgements: Mapping[str, Judgement]) -> None:
    """Turn judgements (by what they are about) into an outcome: all pass, or an exception with all that is
    known.

    Raises ConformanceFailure where one fails, Inconclusive where none fails and one does not pass. What makes
    samples unfit to judge makes their judgement inconclusive whatever they show.
    """
    lines: list[str] = []
    for name, judgement in judgements.items():
        lines += [f"{name}: {line}" for line in judgement.lines()]
    decisions = {judgement.decision for judgement in judgements.values()}
    message = f"board {npu.session.board.name}: {what}\n" + "\n".join(lines)
    if "fail" in decisions:
        raise ConformanceFailure(message)
    if "inconclusive" in decisions:
        raise Inconclusive(message)
    for line in lines:
        npu.record.note(line)
