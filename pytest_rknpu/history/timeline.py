"""When a test began to fail on a board, after which versions, and when it passed again. Pure.

Only what shows something counts: a pass, a failure, or a failure that a waiver covers. A run that skipped the
test, or could not judge it, says nothing of either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_rknpu.history.versions import differences
from pytest_rknpu.verdict import Outcome, worst

FAILING = frozenset({Outcome.FAIL, Outcome.WAIVED})
JUDGED = FAILING | {Outcome.PASS}
_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True)
class Seen:
    """What one run showed of one test on one board.

    ``run`` is the run's place in the order of runs, ``nth`` counts those that showed whether it passes.
    """

    run: int
    outcome: Outcome
    versions: Mapping[str, str]
    nth: int = 0
    message: str = ""


@dataclass(frozen=True)
class Span:
    """A test that failed from ``first_failure`` on, until ``passes_again`` (None: it still does).

    ``last_pass`` is None where it never passed before. ``failures`` counts the runs.
    """

    last_pass: Seen | None
    first_failure: Seen
    failures: int
    passes_again: Seen | None


@dataclass(frozen=True)
class Break:
    """Tests of one requirement on one board that failed, and passed again, in the same runs.

    ``differs``: the versions of the last pass and of the first failure, where they are not the same.
    """

    requirement: str
    tests: tuple[str, ...]
    span: Span
    differs: Mapping[str, tuple[str, str]]

    @property
    def never_passed(self) -> bool:
        """Whether it failed in the first run that showed anything of it."""
        return self.span.last_pass is None

    @property
    def open(self) -> bool:
        """Whether nothing has passed since."""
        return self.span.passes_again is None

    @property
    def transient(self) -> bool:
        """Whether it came and went on the same versions: nothing of it says where to look."""
        return not (self.open or self.never_passed or self.differs)


def one_per_run(seen: Iterable[Seen]) -> list[Seen]:
    """Of several lines for a test in one run the worst, as the run counted it; in the order of runs."""
    by_run: dict[int, list[Seen]] = defaultdict(list)
    for one in seen:
        by_run[one.run].append(one)
    found = []
    for run in sorted(by_run):
        deciding = worst(one.outcome for one in by_run[run])
        found.append(next(one for one in by_run[run] if one.outcome is deciding))
    return found


def spans(seen: Iterable[Seen]) -> Iterator[Span]:
    """The times in which a test failed, first to last.

    Of runs that showed the same one after the other, those between the first and the last may be missing.
    """
    last_pass: Seen | None = None
    failed: list[Seen] = []
    for one in one_per_run(one for one in seen if one.outcome in JUDGED):
        if one.outcome in FAILING:
            failed.append(one)
            continue
        if failed:
            yield _span(last_pass, failed, one)
        last_pass, failed = one, []
    if failed:
        yield _span(last_pass, failed, None)


def _span(last_pass: Seen | None, failed: Sequence[Seen], passes_again: Seen | None) -> Span:
    return Span(last_pass, failed[0], failed[-1].nth - failed[0].nth + 1, passes_again)


def breaks(tests: Mapping[str, tuple[Sequence[str], Sequence[Seen]]]) -> list[Break]:
    """All breaks on one board; ``tests`` maps a test to the requirements it is about and what was seen of it.

    Tests of a requirement that broke between the same two runs, and passed again in the same, are one break.
    """
    together: dict[tuple[str, int, int, int], list[tuple[str, Span]]] = defaultdict(list)
    for test, (requirements, seen) in tests.items():
        for span in spans(seen):
            for requirement in requirements:
                key = (requirement, span.first_failure.run, _run(span.last_pass), _run(span.passes_again))
                together[key].append((test, span))
    found = []
    for (requirement, *_), members in together.items():
        span = max((span for _, span in members), key=lambda span: span.failures)
        differs = differences(span.last_pass.versions, span.first_failure.versions) if span.last_pass else {}
        found.append(Break(requirement, tuple(sorted(test for test, _ in members)), span, differs))
    return sorted(found, key=lambda one: (one.requirement, one.span.first_failure.run, one.tests))


def _run(seen: Seen | None) -> int:
    return -1 if seen is None else seen.run


@dataclass(frozen=True)
class Turned:
    """A test that the newest run of a board shows worse than the run before that has it."""

    test: str
    requirements: tuple[str, ...]
    before: Seen
    after: Seen
    turn: str
    differs: Mapping[str, tuple[str, str]]


def alike(regressions: Iterable[Turned]) -> list[tuple[Turned, ...]]:
    """Regressions of one requirement that turned alike, between the same runs, together; in their order."""
    groups: dict[tuple[object, ...], list[Turned]] = {}
    for one in regressions:
        key = (one.requirements, one.turn, one.before.run, one.before.outcome, one.after.outcome)
        groups.setdefault(key, []).append(one)
    return [tuple(group) for group in groups.values()]


def turned(test: str, requirements: Sequence[str], seen: Sequence[Seen], newest: int) -> Turned | None:
    """Whether a test regressed in run ``newest``, by the rule of `rknpu compare`; skips do not count."""
    from pytest_rknpu.report.comparison import REGRESSIONS, turn_of

    runs = one_per_run(one for one in seen if one.outcome is not Outcome.SKIP)
    if len(runs) < 2 or runs[-1].run != newest or runs[-1].outcome is runs[-2].outcome:
        return None
    before, after = runs[-2:]
    turn = turn_of(before.outcome, after.outcome)
    if turn not in REGRESSIONS:
        return None
    return Turned(
        test, tuple(requirements), before, after, turn, differences(before.versions, after.versions)
    )
