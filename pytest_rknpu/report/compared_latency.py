"""The latency of two runs against each other: what got slower, and what may not be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_rknpu.measure.comparison import Change, Direction, change_of, holm, unfit_to_compare
from pytest_rknpu.measure.conditions import CLOCK, FIXED_GOVERNORS
from pytest_rknpu.report.results import Result
from pytest_rknpu.report.timed import TimedRuns, disturbances, timed_runs
from pytest_rknpu.verdict import Measurement

Pairs = Sequence[tuple[Result, Result]]
"""The results of one test in run A and in run B."""


@dataclass(frozen=True)
class LatencyChange:
    """One quantile of one model; ``corrected`` is the p-value after Holm, over all that were compared."""

    runs: TimedRuns
    change: Change
    corrected: float
    direction: Direction


@dataclass(frozen=True)
class NotCompared:
    """Timed in both runs, and not compared: why."""

    runs: TimedRuns
    reasons: tuple[str, ...]


def compare_latency(
    pairs: Pairs, alpha: float, floor: float
) -> tuple[tuple[LatencyChange, ...], tuple[NotCompared, ...]]:
    """All quantiles of all that was timed in both runs; p-values corrected for their number."""
    changes: list[tuple[TimedRuns, Change]] = []
    not_compared: list[NotCompared] = []
    for one, other in pairs:
        for old, new in _timed_in_both(one, other):
            reasons = why_not_comparable(one, other) + unfit_to_compare(old.processes, new.processes)
            if reasons:
                not_compared.append(NotCompared(new, tuple(reasons)))
                continue
            found = change_of(old.processes, new.processes, alpha=alpha, floor=floor)
            changes += [(new, change) for change in found]
    corrected = holm([change.p_value for _, change in changes])
    decided = tuple(
        LatencyChange(runs, change, value, change.direction(value, alpha))
        for (runs, change), value in zip(changes, corrected, strict=True)
    )
    return decided, tuple(not_compared)


def _timed_in_both(one: Result, other: Result) -> Iterator[tuple[TimedRuns, TimedRuns]]:
    stored = {(runs.model, runs.core_mask): runs for runs in timed_runs([one])}
    for new in timed_runs([other]):
        old = stored.get((new.model, new.core_mask))
        if old is not None:
            yield old, new


def why_not_comparable(one: Result, other: Result) -> list[str]:
    """Conditions under which times say nothing of versions, in words."""
    reasons = [
        f"{side}: {reason}" for side, result in (("A", one), ("B", other)) for reason in disturbances(result)
    ]
    if one.ran_on != other.ran_on:
        reasons.append(f"another board of those that share the name: {one.ran_on} in A, {other.ran_on} in B")
    return reasons + clocks_moved(one.measurements, other.measurements)


def clocks_moved(before: Iterable[Measurement], after: Iterable[Measurement]) -> list[str]:
    """Clocks that ran otherwise: then times say nothing of versions."""
    old, new = (
        {one.name: str(one.value) for one in side if one.name.startswith(CLOCK)} for side in (before, after)
    )
    missing = "not recorded"
    return [
        f"{name}: {old.get(name, missing)} in A, {new.get(name, missing)} in B"
        for name in sorted(old.keys() | new.keys())
        if not _ran_alike(old.get(name), new.get(name))
    ]


def _ran_alike(one: str | None, other: str | None) -> bool:
    """The same words; or the same frequency under two governors that both leave it alone."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    (governor, _, hertz), (other_governor, _, other_hertz) = one.partition(", "), other.partition(", ")
    return hertz == other_hertz != "" and {governor, other_governor} <= FIXED_GOVERNORS
