"""Trends as SVG by matplotlib: a line per quantile over the runs, its bounds as a band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pytest_rknpu.history.page.content import Plot
from pytest_rknpu.history.queries import RunAt
from pytest_rknpu.history.trends import Point, Trend
from pytest_rknpu.report.page.parts import Figure, svg_of

# Seen well on white and on black, and told apart by those who do not see red and green.
_COLOURS = {0.5: "#2563eb", 0.95: "#c2410c", 0.99: "#9333ea"}
_OTHER = "#64748b"
_MOST_MARKS = 80  # with more points a line of marks is a stripe, and each mark is an element of the page
_MOST_DATES = 6


def trend_figure(plot: Plot, runs: Sequence[RunAt]) -> Figure:
    """One plot. The numbers in it are those of the changes, which the page lists below it."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(6.4, 3.0), layout="constrained")
    axes = canvas.add_subplot()
    for line in plot.lines:
        _draw(axes, line)
    for number, (run, _) in enumerate(plot.changes, start=1):
        axes.axvline(run - 0.5, linestyle=":", color=_OTHER, linewidth=1)
        axes.annotate(
            str(number),
            (run - 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            fontsize=7,
            ha="center",
            va="bottom",
        )
    shown = sorted({point.run for line in plot.lines for point in line.points})
    dated = shown[:: max(1, math.ceil(len(shown) / _MOST_DATES))]
    axes.set_xticks(dated, [runs[run].day for run in dated], fontsize=7)
    axes.set_ylabel("ms")
    axes.grid(alpha=0.3)
    axes.legend(
        fontsize=7, framealpha=0.0, ncols=len(plot.lines), loc="upper left", bbox_to_anchor=(0, -0.12)
    )
    return Figure(plot.title, plot.words, svg_of(canvas))


def _draw(axes: Any, line: Trend) -> None:
    colour = _COLOURS.get(line.quantile, _OTHER)
    fit = [point for point in line.points if point.fit]
    unfit = [point for point in line.points if not point.fit]
    axes.plot(
        [point.run for point in fit],
        [point.value_ms for point in fit],
        color=colour,
        linewidth=1.2,
        marker="o" if len(fit) <= _MOST_MARKS else None,
        markersize=3,
        label=f"p{100 * line.quantile:g}",
    )
    bounded = [point for point in fit if point.lower_ms is not None and point.upper_ms is not None]
    axes.fill_between(*_band(bounded), color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        [point.run for point in unfit],
        [point.value_ms for point in unfit],
        linestyle="none",
        marker="o",
        markersize=5,
        markerfacecolor="none",
        markeredgecolor=colour,
    )


def _band(points: Sequence[Point]) -> tuple[list[int], list[float], list[float]]:
    return (
        [point.run for point in points],
        [point.lower_ms or 0.0 for point in points],
        [point.upper_ms or 0.0 for point in points],
    )
