"""What the database knows of one board, as the pure modules take it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_rknpu.history.flaky import Flaky
from pytest_rknpu.history.store import HistoryDatabase, requirement_ids
from pytest_rknpu.history.timeline import Seen
from pytest_rknpu.history.trends import Point
from pytest_rknpu.history.versions import Versions, restored
from pytest_rknpu.verdict import Outcome

Wanted = Callable[[str], bool]


@dataclass(frozen=True)
class RunAt:
    """A run in the order of time. ``started`` is ISO 8601 in UTC."""

    run_id: str
    started: str
    plugin: str
    effort: str

    @property
    def day(self) -> str:
        """The date of its start."""
        return self.started[:10]


@dataclass(frozen=True)
class Board:
    """A board as results name it: never two kinds of evidence, and each board of a pool by itself."""

    name: str
    soc: str
    evidence: str
    ran_on: str

    def __str__(self) -> str:
        where = f" on {self.ran_on}" if self.ran_on else ""
        return f"{self.name}{where} ({self.soc}, {self.evidence})" if self.name else "no board"


@dataclass
class Names:
    """The tables of names, read once; ``places`` maps the number of a run to its place in time."""

    runs: tuple[RunAt, ...]
    places: Mapping[int, int]
    boards: Mapping[int, Board]
    tests: Mapping[int, str]
    requirements: Mapping[int, tuple[str, ...]]
    _said: Mapping[int, str]
    _versions: dict[int, Versions] = field(default_factory=dict)

    def versions(self, number: int) -> Versions:
        """A set of versions by its number."""
        if number not in self._versions:
            self._versions[number] = restored(self._said[number])
        return self._versions[number]


def names_in(database: HistoryDatabase) -> Names:
    """All names, and the runs sorted by their start."""
    rows = database.rows("SELECT id, run_id, started, plugin, effort FROM run ORDER BY started, id")
    return Names(
        runs=tuple(RunAt(*row[1:]) for row in rows),
        places={row[0]: place for place, row in enumerate(rows)},
        boards={
            row[0]: Board(*row[1:])
            for row in database.rows("SELECT id, name, soc, evidence, ran_on FROM board")
        },
        tests=dict(database.rows("SELECT id, name FROM test")),
        requirements={
            number: requirement_ids(text)
            for number, text in database.rows("SELECT id, ids FROM requirements")
        },
        _said=dict(database.rows("SELECT id, said FROM versions")),
    )


@dataclass(frozen=True)
class Counted:
    """How many runs with a set of versions made this of a requirement."""

    versions: Versions
    requirement: str
    outcome: Outcome
    runs: int


def cells_of(database: HistoryDatabase, names: Names, board: int) -> list[Counted]:
    """What all runs made of all requirements on a board."""
    query = (
        "SELECT held.versions, requirement, outcome, count(*) FROM held JOIN cell USING(run, board) "
        "WHERE board = ? GROUP BY held.versions, requirement, outcome"
    )
    return [
        Counted(names.versions(versions), requirement, Outcome(outcome), runs)
        for versions, requirement, outcome, runs in database.rows(query, (board,))
    ]


def held_by(database: HistoryDatabase, names: Names, board: int) -> dict[int, Versions]:
    """The runs that were on a board, in order, and the versions that it had."""
    rows = database.rows("SELECT run, versions FROM held WHERE board = ?", (board,))
    placed = sorted((names.places[run], versions) for run, versions in rows)
    return {place: names.versions(versions) for place, versions in placed}


@dataclass
class TestSeen:
    """What was seen of a test on one board, and every requirement that it was about there."""

    requirements: tuple[str, ...] = ()
    seen: list[Seen] = field(default_factory=list)

    def add(self, requirements: tuple[str, ...], seen: Seen) -> None:
        """One more result."""
        self.requirements = tuple(dict.fromkeys((*self.requirements, *requirements)))
        self.seen.append(seen)


# Of the tests that ever failed, the runs in which a test turned, and those beside them.
_TURNS = """
WITH judged AS (
  SELECT test, moment, run, max(outcome <> 'pass') AS failing FROM result
  WHERE board = ?1 AND outcome IN ('pass', 'fail', 'waived') AND test IN (
    SELECT test FROM result INDEXED BY result_failing WHERE board = ?1 AND outcome IN ('fail', 'waived'))
  GROUP BY test, moment, run),
placed AS (
  SELECT *, row_number() OVER way AS nth, lag(failing) OVER way AS before, lead(failing) OVER way AS after
  FROM judged WINDOW way AS (PARTITION BY test ORDER BY moment, run))
SELECT test, run, outcome, versions, requirements, nth, message
FROM placed JOIN result USING(test, moment, run)
WHERE board = ?1
  AND (failing <> before OR failing <> after OR (failing AND (before IS NULL OR after IS NULL)))
"""
_IN_THE_NEWEST_RUN = """
SELECT test, run, outcome, versions, requirements, 0, message FROM result WHERE board = ?1 AND test IN (
  SELECT test FROM result WHERE run = ?2 AND board = ?1 AND outcome IN ({reds}))
"""


def turns_of(database: HistoryDatabase, names: Names, board: int) -> Mapping[int, TestSeen]:
    """The tests that failed in any run, and of each the runs where it turned: what `timeline.spans` needs."""
    return _by_test(names, database.rows(_TURNS, (board,)))


def red_in_the_newest(
    database: HistoryDatabase, names: Names, board: int, place: int
) -> Mapping[int, TestSeen]:
    """The tests that are red in the run at this place, and all that was seen of them."""
    number = next(number for number, at in names.places.items() if at == place)
    reds = ", ".join(f"'{outcome}'" for outcome in Outcome if outcome.red)
    return _by_test(names, database.rows(_IN_THE_NEWEST_RUN.format(reds=reds), (board, number)))


def _by_test(names: Names, rows: list[tuple[Any, ...]]) -> Mapping[int, TestSeen]:
    found: dict[int, TestSeen] = defaultdict(TestSeen)
    for test, run, outcome, versions, requirements, nth, message in rows:
        seen = Seen(names.places[run], Outcome(outcome), names.versions(versions), nth, message)
        found[test].add(names.requirements[requirements], seen)
    return found


@dataclass(frozen=True)
class Unsteady:
    """A test that ended in more than one way with one set of versions."""

    test: str
    requirements: tuple[str, ...]
    versions: Versions
    flaky: Flaky


# The planner has no statistics, and would take the other index for what is asked in the order of time.
_ATTEMPTS = "result INDEXED BY result_by_versions WHERE board = ?1 AND tried = 1 AND outcome <> 'skip'"
_ENDS = f"SELECT test, versions, outcome, count(*) FROM {_ATTEMPTS} GROUP BY test, versions, outcome"
_SEEDS = f"""
SELECT count(*), sum(ends > 1) FROM (
  SELECT count(DISTINCT outcome) AS ends FROM {_ATTEMPTS} AND test = ?2 AND versions = ?3 GROUP BY seed)
"""
_CHANGES = f"""
SELECT count(*) FROM (
  SELECT outcome, lag(outcome) OVER (ORDER BY moment, run, rowid) AS before
  FROM {_ATTEMPTS} AND test = ?2 AND versions = ?3)
WHERE outcome <> before
"""


def unsteady_tests(database: HistoryDatabase, names: Names, board: int) -> list[Unsteady]:
    """Every test and set of versions with more than one outcome; skips and what was not tried are none."""
    ends: dict[tuple[int, int], dict[Outcome, int]] = defaultdict(dict)
    for test, versions, outcome, count in database.rows(_ENDS, (board,)):
        ends[test, versions][Outcome(outcome)] = count
    found = []
    for (test, versions), outcomes in ends.items():
        if len(outcomes) > 1:
            which = (board, test, versions)
            ((seeds, differing),) = database.rows(_SEEDS, which)
            ((changes,),) = database.rows(_CHANGES, which)
            flaky = Flaky(outcomes, changes, differing, seeds)
            requirements = _requirements_of(database, names, which)
            found.append(Unsteady(names.tests[test], requirements, names.versions(versions), flaky))
    return found


def _requirements_of(database: HistoryDatabase, names: Names, which: tuple[int, int, int]) -> tuple[str, ...]:
    query = "SELECT DISTINCT requirements FROM result WHERE board = ? AND test = ? AND versions = ?"
    sets = [names.requirements[number] for (number,) in database.rows(query, which)]
    return tuple(dict.fromkeys(id for ids in sets for id in ids))


def latency_of(
    database: HistoryDatabase, names: Names, board: int, wanted: Wanted
) -> list[tuple[tuple[str, str, str, float], Point]]:
    """The quantiles that runs measured on a board, each with its line: test, model, core mask, quantile."""
    query = (
        "SELECT test, model, core_mask, quantile, requirements, run, outcome, value_ms, lower_ms, upper_ms, "
        "samples, processes, disturbed, versions FROM latency WHERE board = ?"
    )
    found = []
    for row in database.rows(query, (board,)):
        test, model, mask, quantile, requirements = row[:5]
        if any(map(wanted, names.requirements[requirements])):
            key = (names.tests[test], model, mask, quantile)
            found.append((key, _point(names, row[5:])))
    return found


def _point(names: Names, row: tuple[Any, ...]) -> Point:
    run, outcome, value, lower, upper, samples, processes, disturbed, versions = row
    return Point(
        run=names.places[run],
        outcome=Outcome(outcome),
        value_ms=value,
        lower_ms=lower,
        upper_ms=upper,
        samples=samples,
        processes=processes,
        disturbed=disturbed,
        versions=names.versions(versions),
    )
