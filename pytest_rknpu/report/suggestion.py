"""``[[budget]]`` tables out of a measured run: what it took, plus a margin.

A budget starts from the upper confidence bound of what was measured, not from the sample's own quantile: the
same board, measured again, lies above its own quantile half of the time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure import instabilities, quantile_figures
from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA
from pytest_rknpu.report.results import Result, Results
from pytest_rknpu.report.timed import Doubles, TimedRuns, timed_runs

HARDWARE = "hardware"
DEFAULT_MARGIN = 0.1
MOST_MARGIN = 10.0
_DIGITS = 3
_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_STARTS = {"init_ms": "rknn_init", "first_inference_ms": "first inference"}
Place = tuple[str, str, str | None]
"""Board, model, core mask."""


@dataclass(frozen=True)
class Suggestion:
    """Budgets in ms for one model, or why there are none."""

    runs: TimedRuns
    figures: dict[str, float]
    reasons: tuple[str, ...]


def suggest(
    results: Results, *, margin: float = DEFAULT_MARGIN, evidence: str = HARDWARE
) -> list[Suggestion]:
    """Budgets for each board, model and core mask that were timed in a run, on that kind of evidence only.

    ``margin`` is relative (0.1: 10 % more than measured). Raises ConfigurationError for a margin that cannot
    be meant, and where nothing was timed.
    """
    if not 0.0 <= margin <= MOST_MARGIN:
        raise ConfigurationError(f"margin {margin:g}: give it in per cent, from 0 to {100 * MOST_MARGIN:g}")
    timed = [runs for runs in timed_runs(results.tests) if runs.result.evidence == evidence]
    if not timed:
        raise ConfigurationError(_nothing(results.tests, evidence))
    largest: dict[Place, TimedRuns] = {}
    for runs in timed:
        known = largest.get(_place(runs))
        if known is None or runs.count > known.count:
            largest[_place(runs)] = runs
    starts = _starts(result for result in results.tests if result.evidence == evidence)
    return [_suggestion(runs, margin, starts.get(place, {})) for place, runs in largest.items()]


def _place(runs: TimedRuns) -> Place:
    return str(runs.result.board), runs.model, runs.core_mask


def _nothing(tests: Iterable[Result], evidence: str) -> str:
    others = sorted({str(runs.result.evidence) for runs in timed_runs(tests)})
    if not others:
        return "no model was timed in this run; run the latency suite (LAT-01) with --rknpu-report"
    return (
        f"no model was timed with evidence {evidence} in this run, only with {', '.join(others)}, which is "
        f"not silicon's time; --evidence {others[0]} makes budgets of it all the same"
    )


def _starts(tests: Iterable[Result]) -> dict[Place, dict[str, Doubles]]:
    """Samples of rknn_init and of the first inference in ms, one per process (LAT-02)."""
    found: dict[Place, dict[str, Doubles]] = {}
    for result in tests:
        values = {one.name: str(one.value) for one in result.measurements}
        if "LAT-02" not in result.requirement or "model" not in values or "core mask" not in values:
            continue
        mask = values["core mask"]
        place = (str(result.board), values["model"], None if mask == "none" else mask)
        for key, name in _STARTS.items():
            for samples in result.samples:
                if samples.name == name and samples.unit == "ns":
                    taken = [value / 1e6 for process in samples.processes for value in process]
                    found.setdefault(place, {})[key] = np.array(taken, np.float64)
    return found


def _suggestion(runs: TimedRuns, margin: float, starts: dict[str, Doubles]) -> Suggestion:
    reasons = tuple(instabilities(runs.processes))
    if reasons:
        return Suggestion(runs, {}, reasons)
    samples = {key: (runs.processes, quantile) for key, quantile in _QUANTILES.items()}
    samples |= {key: ((values,), 0.5) for key, values in starts.items()}
    bounds = {
        key: quantile_figures(processes, quantile, DEFAULT_ALPHA).bounds.upper
        for key, (processes, quantile) in samples.items()
    }
    figures = {key: rounded_up(value * (1 + margin)) for key, value in bounds.items() if math.isfinite(value)}
    return Suggestion(runs, figures, () if figures else (f"{runs.count} runs bound no quantile; time more",))


def rounded_up(milliseconds: float) -> float:
    """To three digits, never below what is given (a hair of floating point apart)."""
    step = 10.0 ** (math.floor(math.log10(milliseconds)) - _DIGITS + 1)
    return float(f"{math.ceil(round(milliseconds / step, 6)) * step:.{_DIGITS + 1}g}")


def suggestion_toml(results: Results, suggestions: Iterable[Suggestion], margin: float, evidence: str) -> str:
    """Lines for boards.toml: first where they come from, then one ``[[budget]]`` per model."""
    lines = [
        f"# Suggested by `rknpu suggest-budgets` from run {results.run.run_id} of {results.run.started}.",
        f"# Each time is the upper {1 - DEFAULT_ALPHA:.0%} bound of what was measured, plus a margin of "
        f"{100 * margin:g} %, rounded up.",
        f"# Evidence: {evidence}." + ("" if evidence == HARDWARE else " These are not the times of silicon."),
    ]
    if results.torn:
        lines.append("# The run was cut off: models may be missing.")
    for one in suggestions:
        lines += ["", *_table(one)]
    return "\n".join(lines)


def _table(one: Suggestion) -> Iterator[str]:
    board, model, core_mask = _place(one.runs)
    if not one.figures:
        yield f"# no budget for {model} on {board}: {'; '.join(one.reasons)}"
        return
    yield "[[budget]]"
    yield f"model = {json.dumps(model)}"
    yield f"board = {json.dumps(board)}"
    if core_mask is not None:
        yield f"core_mask = {json.dumps(core_mask)}"
    for key, value in one.figures.items():
        yield f"{key} = {value!r}"
