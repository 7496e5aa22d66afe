"""Drawings as SVG text: latency distributions. matplotlib is imported only where there are samples."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_rknpu.measure.latency import QuantileFigures, quantile_figures
from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA, QUANTILES, quantile_name
from pytest_rknpu.report.page.parts import Figure, svg_of
from pytest_rknpu.report.results import Result
from pytest_rknpu.report.timed import TimedRuns, timed_runs

_BUDGET = re.compile(r"^budget (p50|p95|p99)$")


def latency_figures(tests: Iterable[Result]) -> Iterator[Figure]:
    """One distribution for each test that timed runs."""
    for runs in timed_runs(tests):
        yield _figure(runs)


def _figure(runs: TimedRuns) -> Figure:
    samples = np.sort(np.concatenate(runs.processes))
    quantiles = [quantile_figures(runs.processes, quantile, DEFAULT_ALPHA) for quantile in QUANTILES]
    budgets = budgets_of(runs.result)
    board = runs.result.board or ""
    title = f"{board}: {runs.what} ({runs.result.evidence}, {runs.result.outcome})"
    words = "; ".join(_in_words(figures, budgets) for figures in quantiles)
    words = f"{runs.count} runs in {len(runs.processes)} processes: {words}"
    return Figure(title, words, _ecdf(samples, quantiles, budgets))


def _in_words(figures: QuantileFigures, budgets: Mapping[str, float]) -> str:
    name = quantile_name(figures.quantile)
    lower, upper = figures.bounds.lower, figures.bounds.upper
    least = f"at least {lower:.3f}" if math.isfinite(lower) else "no lower bound"
    most = f"at most {upper:.3f}" if math.isfinite(upper) else "no upper bound"
    budget = f", budget {budgets[name]:g}" if name in budgets else ""
    return f"{name} {figures.value:.3f} ms ({least}, {most}{budget})"


def budgets_of(result: Result) -> dict[str, float]:
    """Quantile -> budget in ms, as the test wrote them down."""
    found = {}
    for one in result.measurements:
        match = _BUDGET.match(one.name)
        if match and isinstance(one.value, (int, float)):
            found[match[1]] = float(one.value)
    return found


def _ecdf(
    samples: np.ndarray[Any, np.dtype[np.float64]],
    quantiles: Sequence[QuantileFigures],
    budgets: Mapping[str, float],
) -> str:
    """Shares of runs, quantiles with their 95 % bounds (each side) as bars, budgets as broken lines."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(6.4, 2.8), layout="constrained")
    axes = canvas.add_subplot()
    shares = np.arange(1, len(samples) + 1) / len(samples)
    axes.step(samples, shares, where="post", color="#2563eb")
    for figures in quantiles:
        below, above = figures.value - figures.bounds.lower, figures.bounds.upper - figures.value
        axes.errorbar(
            [figures.value],
            [figures.quantile],
            xerr=[[below if math.isfinite(below) else 0.0], [above if math.isfinite(above) else 0.0]],
            fmt="o",
            color="#2563eb",
            markersize=4,
            capsize=3,
        )
    for name, value in budgets.items():
        axes.axvline(value, linestyle="--", color="#dc2626", linewidth=1)
        axes.annotate(f"budget {name}", (value, 0.02), rotation=90, fontsize=7, color="#dc2626")
    axes.set_xlabel("ms")
    axes.set_ylabel("share of runs")
    axes.grid(alpha=0.3)
    return svg_of(canvas)
