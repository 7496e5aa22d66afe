"""Two runs against each other: what got slower, larger or less accurate, what began to fail, and which
versions differ between them.

Results belong together by board, SoC, kind of evidence and test: an emulated board is never compared with
silicon, whatever both are called.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure.comparison import (
    NOISE_FLOOR,
    Change,
    Direction,
    change_of,
    holm,
    unfit_to_compare,
)
from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA
from pytest_rknpu.report.results import Result, Results, RunRecord
from pytest_rknpu.report.timed import TimedRuns, suite_test, timed_runs
from pytest_rknpu.verdict import Measurement, Outcome

Key = tuple[str, str, str, str]
"""Board, SoC, evidence, test."""
Turn = Literal["began to fail", "no longer shown", "ceased to fail", "other"]

FIGURES = ("ACC", "MEM", "SPARSE")
"""Chapters whose figures are compared: accuracy, memory and sparse models."""


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


@dataclass(frozen=True)
class OutcomeChange:
    """A test that ended differently. ``after`` is the whole result: its message says why."""

    before: Outcome
    after: Result
    turn: Turn


@dataclass(frozen=True)
class FigureChange:
    """A figure of accuracy or memory that differs."""

    result: Result
    name: str
    before: float
    after: float
    unit: str


@dataclass(frozen=True)
class VersionChange:
    """What one board said of one version; several values where it changed within a run."""

    board: str
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class RunComparison:
    """All that differs between run A and run B, and what ``alpha`` and ``floor`` it was decided by."""

    a: RunRecord
    b: RunRecord
    alpha: float
    floor: float
    tests: int
    latency: tuple[LatencyChange, ...]
    not_compared: tuple[NotCompared, ...]
    outcomes: tuple[OutcomeChange, ...]
    figures: tuple[FigureChange, ...]
    versions: tuple[VersionChange, ...]
    notes: tuple[str, ...]

    @property
    def regressed(self) -> bool:
        """Whether something is shown to be slower, began to fail, or passed and no longer does."""
        slower = any(one.direction == "slower" for one in self.latency)
        return slower or any(one.turn in ("began to fail", "no longer shown") for one in self.outcomes)


def compare_runs(
    a: Results, b: Results, *, alpha: float = DEFAULT_ALPHA, floor: float = NOISE_FLOOR
) -> RunComparison:
    """Compare run B with run A. Raises ConfigurationError where they have no test in common."""
    before, after = _by_key(a.tests), _by_key(b.tests)
    common = [key for key in after if key in before]
    if not common:
        raise ConfigurationError(
            f"nothing to compare: {_boards(a)} in A and {_boards(b)} in B have no test in common on a board "
            "of the same name, SoC and kind of evidence"
        )
    pairs = [(before[key], after[key]) for key in common]
    latency, not_compared = _latency(pairs, alpha, floor)
    return RunComparison(
        a=a.run,
        b=b.run,
        alpha=alpha,
        floor=floor,
        tests=len(common),
        latency=latency,
        not_compared=not_compared,
        outcomes=tuple(_outcomes(pairs)),
        figures=tuple(_figures(pairs)),
        versions=tuple(_versions(pairs)),
        notes=tuple(_notes(a, b, before, after)),
    )


def _by_key(results: Iterable[Result]) -> dict[Key, Result]:
    """The last result of each test: the one that counts, where it ran again."""
    return {
        (one.board or "", one.soc or "", one.evidence or "", suite_test(one.nodeid)): one for one in results
    }


def _boards(results: Results) -> str:
    names = {f"{one.board} ({one.soc}, {one.evidence})" for one in results.tests if one.board}
    return ", ".join(sorted(names)) or "no board"


Pairs = list[tuple[Result, Result]]


def _latency(
    pairs: Pairs, alpha: float, floor: float
) -> tuple[tuple[LatencyChange, ...], tuple[NotCompared, ...]]:
    """All quantiles of all that was timed in both runs; p-values corrected for their number."""
    changes: list[tuple[TimedRuns, Change]] = []
    not_compared: list[NotCompared] = []
    for one, other in pairs:
        for old, new in _timed_in_both(one, other):
            reasons = clocks_moved(one.measurements, other.measurements) + unfit_to_compare(
                old.processes, new.processes
            )
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


def clocks_moved(before: Iterable[Measurement], after: Iterable[Measurement]) -> list[str]:
    """Clocks that ran otherwise: then times say nothing of versions."""
    old, new = (
        {one.name: one.value for one in side if one.name.startswith("clock ")} for side in (before, after)
    )
    return [
        f"{name}: {old[name]} in A, {new[name]} in B"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    ]


def _outcomes(pairs: Pairs) -> Iterator[OutcomeChange]:
    for one, other in pairs:
        if one.outcome is not other.outcome:
            yield OutcomeChange(one.outcome, other, _turn(one.outcome, other.outcome))


def _turn(before: Outcome, after: Outcome) -> Turn:
    if after is Outcome.FAIL:
        return "began to fail"
    if before is Outcome.PASS and after.red:
        return "no longer shown"
    if before is Outcome.FAIL and after in (Outcome.PASS, Outcome.WAIVED):
        return "ceased to fail"
    return "other"


def _figures(pairs: Pairs) -> Iterator[FigureChange]:
    for one, other in pairs:
        if not any(id.partition("-")[0] in FIGURES for id in other.requirement):
            continue
        old = {(m.name, m.unit): m.value for m in one.measurements}
        for measured in other.measurements:
            before, after = old.get((measured.name, measured.unit)), measured.value
            if _is_figure(before) and _is_figure(after) and before != after:
                yield FigureChange(other, measured.name, float(before), float(after), measured.unit)


def _is_figure(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _versions(pairs: Pairs) -> Iterator[VersionChange]:
    boards = dict.fromkeys(other.board for _, other in pairs if other.board is not None)
    for board in boards:
        old = _said([one for one, _ in pairs if one.board == board])
        new = _said([other for _, other in pairs if other.board == board])
        for name in sorted(old.keys() | new.keys()):
            before, after = old.get(name, "not recorded"), new.get(name, "not recorded")
            if before != after:
                yield VersionChange(board, name, before, after)


def _said(results: Iterable[Result]) -> Mapping[str, str]:
    values: dict[str, dict[str, None]] = {}
    for result in results:
        for name, value in result.versions.items():
            values.setdefault(name, {})[value] = None
    return {name: " | ".join(sorted(found)) for name, found in values.items()}


def _notes(
    a: Results, b: Results, before: Mapping[Key, Result], after: Mapping[Key, Result]
) -> Iterator[str]:
    """What a reader has to know before believing the rest."""
    for side, results in (("A", a), ("B", b)):
        if results.torn:
            yield f"{side} is cut off in its last line: its run was killed, and tests are missing"
    if a.run.run_id == b.run.run_id:
        yield "A and B are the same run"
    if a.run.seed != b.run.seed:
        yield f"seeds differ ({a.run.seed}, {b.run.seed}): inputs do too, and figures of accuracy with them"
    if a.run.effort != b.run.effort:
        yield f"effort differs ({a.run.effort}, {b.run.effort}): so do the numbers of iterations and runs"
    for side, own, others in (("A", before, after), ("B", after, before)):
        alone = [result for key, result in own.items() if key not in others]
        if alone:
            failing = sum(result.outcome is Outcome.FAIL for result in alone)
            yield f"only in {side}: {len(alone)} tests, {failing} of them fail; they are not compared"
    for side, own in (("A", before), ("B", after)):
        loose = {r.board for r in own.values() if "LAT-05" in r.requirement and r.outcome.red}
        for board in sorted(str(board) for board in loose):
            yield f"{side}: board {board} was not stable (LAT-05)"
    played = {str(r.board) for r in after.values() if "latency_model" in r.versions}
    for board in sorted(played):
        yield f"LATENCY PLAYED on {board}: its times are no board's"
