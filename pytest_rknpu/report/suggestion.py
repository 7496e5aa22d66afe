"""``[[budget]]`` tables out of a measured run: what it took, plus a margin.

A time starts from the upper confidence bound of what was measured, not from the sample's own quantile: the
same board, measured again, lies above its own quantile half of the time. A size is exact and starts from
itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure import instabilities, quantile_figures
from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA
from pytest_rknpu.report.results import Result, Results
from pytest_rknpu.report.timed import Doubles, TimedRuns, disturbances, timed_runs

HARDWARE = "hardware"
DEFAULT_MARGIN = 0.1
MOST_MARGIN = 10.0
_DIGITS = 3
_QUANTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
_STARTS = {"init_ms": "rknn_init", "first_inference_ms": "first inference"}
_SIZES = ("weight_bytes", "internal_bytes", "dma_bytes")
_ONE_CORE = (None, "RKNN_NPU_CORE_0")


@dataclass(frozen=True)
class Place:
    """What a budget is for. ``core_mask`` is None where the SoC has none, and where only sizes are known."""

    board: str
    model: str
    core_mask: str | None


@dataclass(frozen=True)
class Suggestion:
    """Budgets by key, times in ms and sizes in bytes; ``reasons`` say why there are no times."""

    place: Place
    figures: dict[str, float]
    reasons: tuple[str, ...]


def suggest(
    results: Results, *, margin: float = DEFAULT_MARGIN, evidence: str = HARDWARE
) -> list[Suggestion]:
    """Budgets for all that was timed or sized in a run, on that kind of evidence only.

    ``margin`` is relative (0.1: 10 % more than measured). Raises ConfigurationError for a margin that cannot
    be meant, and where nothing was measured.
    """
    if not 0.0 <= margin <= MOST_MARGIN:
        raise ConfigurationError(f"margin {margin:g}: give it in per cent, from 0 to {100 * MOST_MARGIN:g}")
    tests = [result for result in results.tests if result.evidence == evidence]
    starts = _starts(tests)
    found: dict[Place, Suggestion] = {}
    for place, runs in _best_runs(tests).items():
        found[place] = _of_times(place, runs, margin, starts.get(place, {}))
    for place, sizes in _sizes(tests).items():
        one_core = (replace(place, core_mask=mask) for mask in _ONE_CORE)
        known = next((found[one] for one in one_core if one in found), Suggestion(place, {}, ()))
        figures = {key: float(math.ceil(round(size * (1 + margin), 6))) for key, size in sizes.items()}
        found[known.place] = replace(known, figures={**known.figures, **figures})
    if not found:
        raise ConfigurationError(_nothing(results.tests, evidence))
    return list(found.values())


def _nothing(tests: Iterable[Result], evidence: str) -> str:
    others = sorted({str(runs.result.evidence) for runs in timed_runs(tests)})
    if not others:
        return "no model was timed in this run; run the latency suite (LAT-01) with --rknpu-report"
    return (
        f"no model was timed with evidence {evidence} in this run, only with {', '.join(others)}, which is "
        f"not silicon's time; --evidence {others[0]} makes budgets of it all the same"
    )


def _best_runs(tests: Iterable[Result]) -> dict[Place, TimedRuns]:
    """Of several tests that timed the same the one that was not disturbed, holds still, and has most runs."""
    found: dict[Place, list[TimedRuns]] = {}
    for runs in timed_runs(tests):
        place = Place(str(runs.result.ran_on or runs.result.board), runs.model, runs.core_mask)
        found.setdefault(place, []).append(runs)
    return {place: min(several, key=_flaws_and_runs) for place, several in found.items()}


def _flaws_and_runs(runs: TimedRuns) -> tuple[bool, int]:
    return bool(_flaws(runs)), -runs.count


def _flaws(runs: TimedRuns) -> list[str]:
    return disturbances(runs.result) + instabilities(runs.processes)


def _of_times(place: Place, runs: TimedRuns, margin: float, starts: dict[str, Doubles]) -> Suggestion:
    flaws = tuple(_flaws(runs))
    if flaws:
        return Suggestion(place, {}, flaws)
    samples = {key: (runs.processes, quantile) for key, quantile in _QUANTILES.items()}
    samples |= {key: ((values,), 0.5) for key, values in starts.items()}
    bounds = {
        key: quantile_figures(processes, quantile, DEFAULT_ALPHA).bounds.upper
        for key, (processes, quantile) in samples.items()
    }
    figures = {key: rounded_up(value * (1 + margin)) for key, value in bounds.items() if math.isfinite(value)}
    return Suggestion(place, figures, () if figures else (f"{runs.count} runs bound no quantile; time more",))


def _starts(tests: Iterable[Result]) -> dict[Place, dict[str, Doubles]]:
    """Samples of rknn_init and of the first inference in ms, one per process (LAT-02)."""
    found: dict[Place, dict[str, Doubles]] = {}
    for result in tests:
        values = {one.name: str(one.value) for one in result.measurements}
        if "LAT-02" not in result.requirement or "model" not in values or "core mask" not in values:
            continue
        if disturbances(result):
            continue
        mask = values["core mask"]
        place = Place(str(result.ran_on or result.board), values["model"], None if mask == "none" else mask)
        for key, name in _STARTS.items():
            for samples in result.samples:
                if samples.name == name and samples.unit == "ns":
                    taken = [value / 1e6 for process in samples.processes for value in process]
                    found.setdefault(place, {})[key] = np.array(taken, np.float64)
    return found


def _sizes(tests: Iterable[Result]) -> dict[Place, dict[str, int]]:
    """What the runtime reported (MEM-01), by model; a size of which it reported 0 is not known."""
    found: dict[Place, dict[str, int]] = {}
    for result in tests:
        values = {one.name: one.value for one in result.measurements}
        if "MEM-01" not in result.requirement or "model" not in values:
            continue
        sizes = {key: value for key in _SIZES if isinstance(value := values.get(key), int) and value > 0}
        if sizes:
            found[Place(str(result.ran_on or result.board), str(values["model"]), None)] = sizes
    return found


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
        f"# Each size is what RKNN_QUERY_MEM_SIZE reported, plus {100 * margin:g} %.",
        f"# Evidence: {evidence}." + ("" if evidence == HARDWARE else " These are not the times of silicon."),
    ]
    if results.torn:
        lines.append("# The run was cut off: models may be missing.")
    for one in suggestions:
        lines += ["", *_table(one)]
    return "\n".join(map(_in_one_line, lines))


def _in_one_line(text: str) -> str:
    """What a results.jsonl says may be a comment here, and nothing else."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _table(one: Suggestion) -> Iterator[str]:
    board, model, core_mask = one.place.board, one.place.model, one.place.core_mask
    if one.reasons:
        yield f"# no times for {model} on {board}: {'; '.join(one.reasons)}"
    if not one.figures:
        return
    yield "[[budget]]"
    yield f"model = {json.dumps(model)}"
    yield f"board = {json.dumps(board)}"
    if core_mask is not None:
        yield f"core_mask = {json.dumps(core_mask)}"
    for key, value in one.figures.items():
        yield f"{key} = {int(value) if key in _SIZES else value!r}"
