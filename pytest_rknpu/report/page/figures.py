"""Drawings as SVG text: latency distributions. matplotlib is imported only where there are samples."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_rknpu.report.results import Result
from pytest_rknpu.report.timed import TimedRuns, timed_runs

_QUANTILES = (0.5, 0.95, 0.99)
_BUDGET = re.compile(r"^budget (p50|p95|p99)$")


@dataclass(frozen=True)
class Figure:
    """A drawing with the words that stand for it where it cannot be seen."""

    title: str
    words: str
    svg: str


def latency_figures(tests: Iterable[Result]) -> Iterator[Figure]:
    """One distribution for each test that timed runs."""
    for runs in timed_runs(tests):
        yield _figure(runs)


def _figure(runs: TimedRuns) -> Figure:
    samples = np.sort(np.concatenate(runs.processes))
    quantiles = {q: float(np.quantile(samples, q)) for q in _QUANTILES}
    words = ", ".join(f"p{q * 100:g} {value:.3f} ms" for q, value in quantiles.items())
    board = runs.result.board or ""
    title = f"{board}: {runs.what} ({runs.result.evidence})"
    words = f"{runs.count} runs in {len(runs.processes)} processes: {words}"
    return Figure(title, words, _ecdf(samples, quantiles, budgets_of(runs.result)))


def budgets_of(result: Result) -> dict[str, float]:
    """Quantile -> budget in ms, as the test wrote them down."""
    found = {}
    for one in result.measurements:
        match = _BUDGET.match(one.name)
        if match and isinstance(one.value, (int, float)):
            found[match[1]] = float(one.value)
    return found


def _ecdf(
    samples: np.ndarray[Any, np.dtype[np.float64]], marks: dict[float, float], budgets: dict[str, float]
) -> str:
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(6.4, 2.8), layout="constrained")
    axes = canvas.add_subplot()
    shares = np.arange(1, len(samples) + 1) / len(samples)
    axes.step(samples, shares, where="post", color="#2563eb")
    for quantile, value in marks.items():
        axes.plot([value], [quantile], "o", color="#2563eb", markersize=4)
    for name, value in budgets.items():
        axes.axvline(value, linestyle="--", color="#dc2626", linewidth=1)
        axes.annotate(f"budget {name}", (value, 0.02), rotation=90, fontsize=7, color="#dc2626")
    axes.set_xlabel("ms")
    axes.set_ylabel("share of runs")
    axes.grid(alpha=0.3)
    return _svg(canvas)


def _svg(canvas: Any) -> str:
    """The drawing as an element that can stand in a page: no XML head, no fixed size, ids of its own."""
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rknpu"}):
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return (
        text[text.index("<svg") :].replace("#000000", "currentColor").replace("fill: #ffffff", "fill: none")
    )


def unique_ids(figures: Sequence[Figure]) -> list[Figure]:
    """The same drawings with ids that no other drawing of the page has."""
    made = []
    for number, figure in enumerate(figures):
        svg = re.sub(r'((?:id="|href="#|url\(#))', rf"\g<1>f{number}-", figure.svg)
        made.append(Figure(figure.title, figure.words, svg))
    return made
