"""Figures of memory and accuracy of two runs against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_rknpu.measure.figures import Figure, Worse, number_in, worse
from pytest_rknpu.report.compared_latency import Pairs
from pytest_rknpu.report.results import Result

CHAPTERS = ("ACC", "MEM", "SPARSE")
"""Of the catalogue: accuracy, memory, sparse models. Others write down times and how often they tried."""


@dataclass(frozen=True)
class FigureChange:
    """A figure that differs; ``worse``: in which way, by more than is tolerated (``measure.figures``)."""

    result: Result
    name: str
    before: float
    after: float
    unit: str
    worse: Worse | None


def compare_figures(pairs: Pairs) -> Iterator[FigureChange]:
    """All figures of these chapters that both runs have and that differ, in the order of run B."""
    for one, other in pairs:
        if not any(id.partition("-")[0] in CHAPTERS for id in other.requirement):
            continue
        old = {(m.name, m.unit): m.value for m in one.measurements}
        for measured in other.measurements:
            before = number_in(old.get((measured.name, measured.unit)))
            after = number_in(measured.value)
            if before is None or after is None or before == after:
                continue
            name, unit = measured.name, measured.unit
            judged = worse(Figure(name, before, unit), Figure(name, after, unit))
            yield FigureChange(other, name, before, after, unit, judged)
