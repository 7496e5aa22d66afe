"""Two runs against each other: what got slower, larger or less accurate, what began to fail, and which
versions differ between them.

Results belong together by board, SoC, kind of evidence and test: an emulated board is never compared with
silicon, whatever both are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure.comparison import NOISE_FLOOR
from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA
from pytest_rknpu.report.compared_figures import FigureChange, compare_figures
from pytest_rknpu.report.compared_latency import LatencyChange, NotCompared, Pairs, compare_latency
from pytest_rknpu.report.node_ids import suite_test
from pytest_rknpu.report.results import Result, Results, RunRecord
from pytest_rknpu.verdict import Outcome, worst

Key = tuple[str, str, str, str]
"""Board, SoC, evidence, test."""
Turn = Literal["began to fail", "no longer shown", "now skipped", "ceased to fail", "other"]
TURNS: tuple[Turn, ...] = ("began to fail", "no longer shown", "now skipped", "ceased to fail", "other")
REGRESSIONS: tuple[Turn, ...] = ("began to fail", "no longer shown")


@dataclass(frozen=True)
class OutcomeChange:
    """A test that ended differently. ``after`` is the whole result: its message says why."""

    before: Outcome
    after: Result
    turn: Turn


@dataclass(frozen=True)
class VersionChange:
    """What one board said of one version; several values where it changed within a run."""

    board: str
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class RunComparison:
    """All that differs between run A and run B, and what ``alpha`` and ``floor`` it was decided by.

    ``cut_off``: B was killed, and nobody knows what its missing tests would show. ``no_longer_run`` are the
    tests that passed in A and are not in B.
    """

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
    cut_off: bool
    no_longer_run: tuple[Result, ...]

    @property
    def regressed(self) -> bool:
        """Whether something got slower, larger or less accurate, began to fail, or is no longer shown."""
        return (
            any(one.direction == "slower" for one in self.latency)
            or any(one.worse for one in self.figures)
            or any(one.turn in REGRESSIONS for one in self.outcomes)
        )

    @property
    def open_ends(self) -> list[str]:
        """What A showed and B says nothing of, one way or the other; in words."""
        skipped = sum(one.turn == "now skipped" for one in self.outcomes)
        counts = (
            (len(self.not_compared), "timed and not compared"),
            (skipped, "passed in A and skipped in B"),
            (len(self.no_longer_run), "passed in A and not in B"),
        )
        cut_off = ["B is cut off"] if self.cut_off else []
        return cut_off + [f"{number} {words}" for number, words in counts if number]


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
    latency, not_compared = compare_latency(pairs, alpha, floor)
    return RunComparison(
        a=a.run,
        b=b.run,
        alpha=alpha,
        floor=floor,
        tests=len(common),
        latency=latency,
        not_compared=not_compared,
        outcomes=tuple(_outcomes(pairs)),
        figures=tuple(compare_figures(pairs)),
        versions=tuple(_versions(pairs)),
        notes=tuple(_notes(a, b, before, after)),
        cut_off=b.torn,
        no_longer_run=tuple(
            result for key, result in before.items() if key not in after and result.outcome is Outcome.PASS
        ),
    )


def _by_key(results: Iterable[Result]) -> dict[Key, Result]:
    """The last result of each test; where it ran again, with the worst outcome, as the run counted it."""
    found: dict[Key, Result] = {}
    for one in results:
        key = (one.board or "", one.soc or "", one.evidence or "", suite_test(one.nodeid))
        earlier = found.get(key)
        if earlier is not None and worst([earlier.outcome, one.outcome]) is not one.outcome:
            one = replace(one, outcome=earlier.outcome, message=earlier.message)
        found[key] = one
    return found


def _boards(results: Results) -> str:
    names = {f"{one.board} ({one.soc}, {one.evidence})" for one in results.tests if one.board}
    return ", ".join(sorted(names)) or "no board"


def _outcomes(pairs: Pairs) -> Iterator[OutcomeChange]:
    for one, other in pairs:
        if one.outcome is not other.outcome:
            yield OutcomeChange(one.outcome, other, turn_of(one.outcome, other.outcome))


def turn_of(before: Outcome, after: Outcome) -> Turn:
    """What it means that a test ended as ``before`` in a run and otherwise, as ``after``, in a later one."""
    if after is Outcome.FAIL:
        return "began to fail"
    if before is Outcome.PASS and after.red:
        return "no longer shown"
    if before is Outcome.FAIL and after in (Outcome.PASS, Outcome.WAIVED):
        return "ceased to fail"
    return "now skipped" if before is Outcome.PASS and after is Outcome.SKIP else "other"


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
        yield f"seeds differ ({a.run.seed}, {b.run.seed}): so do inputs that tests draw, and their figures"
    if a.run.effort != b.run.effort:
        yield f"effort differs ({a.run.effort}, {b.run.effort}): so do the numbers of iterations and runs"
    for side, own, others in (("A", before, after), ("B", after, before)):
        alone = [result for key, result in own.items() if key not in others]
        if alone:
            failing = sum(result.outcome is Outcome.FAIL for result in alone)
            boards = ", ".join(sorted({result.board or "no board" for result in alone}))
            yield f"only in {side}: {len(alone)} tests ({boards}), {failing} of them fail; not compared"
    for side, own in (("A", before), ("B", after)):
        loose = {r.board for r in own.values() if "LAT-05" in r.requirement and r.outcome.red}
        for board in sorted(str(board) for board in loose):
            yield f"{side}: board {board} was not stable (LAT-05)"
    played = {str(r.board) for r in after.values() if "latency_model" in r.versions}
    for board in sorted(played):
        yield f"LATENCY PLAYED on {board}: its times are no board's"
