"""Latency over runs: one line per board, kind of evidence, test, model, core mask and quantile. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_rknpu.measure.comparison import NOISE_FLOOR
from pytest_rknpu.verdict import Outcome

_UNFIT = frozenset({Outcome.INCONCLUSIVE, Outcome.INFRA, Outcome.HARNESS})


@dataclass(frozen=True)
class Point:
    """A quantile in ms as one run measured it, with its 95 % bounds (None: so few samples allow none).

    ``disturbed`` says what disturbed it, in words.
    """

    run: int
    outcome: Outcome
    value_ms: float
    lower_ms: float | None
    upper_ms: float | None
    samples: int
    processes: int
    disturbed: str
    versions: Mapping[str, str]

    @property
    def fit(self) -> bool:
        """Whether the test could be judged: what is not is shown, and compared with nothing."""
        return self.outcome not in _UNFIT and not self.disturbed


@dataclass(frozen=True)
class Trend:
    """The points of one line, in the order of runs. ``core_mask`` is "" where the SoC has but one core."""

    test: str
    model: str
    core_mask: str
    quantile: float
    points: tuple[Point, ...]

    @property
    def what(self) -> str:
        """Model and core mask, in words."""
        return f"{self.model} on {self.core_mask or 'its only core'}"


@dataclass(frozen=True)
class Step:
    """Two points, one after the other, whose bounds lie apart by more than the noise floor."""

    before: Point
    after: Point

    @property
    def slower(self) -> bool:
        """In which direction."""
        return self.after.value_ms > self.before.value_ms

    @property
    def relative(self) -> float:
        """The change of the quantile itself, as a share of what it was."""
        return self.after.value_ms / self.before.value_ms - 1.0


def steps(points: Sequence[Point], floor: float = NOISE_FLOOR) -> list[Step]:
    """Where a line moved: a hint where to look, since the runs of a process are not independent.

    `rknpu compare` of the two runs decides, from their samples.
    """
    fit = [point for point in points if point.fit]
    return [
        Step(before, after)
        for before, after in pairwise(fit)
        if _above(after, before, floor) or _above(before, after, floor)
    ]


def _above(high: Point, low: Point, floor: float) -> bool:
    if high.lower_ms is None or low.upper_ms is None:
        return False
    return high.lower_ms > low.upper_ms * (1.0 + floor)


def trends(points: Iterable[tuple[tuple[str, str, str, float], Point]]) -> list[Trend]:
    """Lines out of points, by (test, model, core mask, quantile); those of one board and kind of evidence."""
    lines: dict[tuple[str, str, str, float], list[Point]] = {}
    for key, point in points:
        lines.setdefault(key, []).append(point)
    return [
        Trend(*key, tuple(sorted(own, key=lambda point: point.run))) for key, own in sorted(lines.items())
    ]
