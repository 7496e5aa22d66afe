"""The history of boards, put together: what the command line and the page show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history import queries
from pytest_rknpu.history.queries import Board, Counted, Names, RunAt, Unsteady, Wanted
from pytest_rknpu.history.store import HistoryDatabase
from pytest_rknpu.history.timeline import Break, Turned, breaks, turned
from pytest_rknpu.history.trends import Trend, trends
from pytest_rknpu.history.versions import Versions, board_part, order_of
from pytest_rknpu.verdict import REQUIREMENTS, Outcome, worst

Said = tuple[tuple[str, str], ...]
NO_REQUIREMENT = ("",)
"""Stands for the requirements of a test that is about none."""
# Silicon first; tests that are about no board have no evidence, and come last.
_KINDS = {kind: place for place, kind in enumerate(("hardware", "vendor-runtime", "simulator", "emulator"))}


@dataclass(frozen=True)
class VersionColumn:
    """A set of versions that a board had: in which runs, and what they made of each requirement there.

    ``cells`` maps a requirement to the worst of its outcomes, how many runs ended so, and how many have it.
    """

    versions: Versions
    runs: tuple[int, ...]
    cells: Mapping[str, tuple[Outcome, int, int]]


@dataclass(frozen=True)
class BoardHistory:
    """One board with one kind of evidence. ``runs`` are places in the order of runs.

    ``columns`` are sorted by version, not by time.
    """

    board: Board
    runs: tuple[int, ...]
    columns: tuple[VersionColumn, ...]
    breaks: tuple[Break, ...]
    regressions: tuple[Turned, ...]
    flaky: tuple[Unsteady, ...]
    trends: tuple[Trend, ...]

    @property
    def requirements(self) -> list[str]:
        """All that any run has, in the catalogue's order."""
        there = {id for column in self.columns for id in column.cells}
        order = {id: place for place, id in enumerate(REQUIREMENTS)}
        return sorted(there, key=lambda id: (order.get(id, len(order)), id))


@dataclass(frozen=True)
class History:
    """All runs in the order of time, and what they show of each board."""

    runs: tuple[RunAt, ...]
    boards: tuple[BoardHistory, ...]

    @property
    def regressed(self) -> bool:
        """Whether the newest run of any board shows a test worse than the run before."""
        return any(board.regressions for board in self.boards)


def overview(
    database: HistoryDatabase, boards: Sequence[str] = (), requirements: Sequence[str] = ()
) -> History:
    """The history of the boards and requirements that match any of the globs; of all where there is none.

    Raises ConfigurationError where there is no run, or a glob matches nothing.
    """
    with database.reading():
        names = queries.names_in(database)
        if not names.runs:
            raise ConfigurationError("no run was found; give report folders that --rknpu-report wrote")
        chosen = _chosen(names, boards)
        wanted = _wanted(requirements, {id for ids in names.requirements.values() for id in ids})
        found = [_board_history(database, names, number, wanted) for number in chosen]
    return History(names.runs, tuple(one for one in found if one.columns or one.trends))


def _chosen(names: Names, globs: Sequence[str]) -> list[int]:
    for glob in globs:
        if not any(fnmatchcase(board.name, glob) for board in names.boards.values()):
            there = ", ".join(sorted({board.name for board in names.boards.values() if board.name}))
            raise ConfigurationError(
                f"--board {glob}: no such board in these runs; there are {there or 'none'}"
            )
    fit = {
        number: board
        for number, board in names.boards.items()
        if not globs or any(fnmatchcase(board.name, glob) for glob in globs)
    }
    return sorted(fit, key=lambda number: (_KINDS.get(fit[number].evidence, len(_KINDS)), str(fit[number])))


def _wanted(globs: Sequence[str], there: set[str]) -> Wanted:
    for glob in globs:
        if not any(fnmatchcase(id, glob.upper()) for id in there):
            raise ConfigurationError(
                f"--requirement {glob}: no test in these runs is about such a requirement"
            )
    return lambda id: not globs or any(fnmatchcase(id, glob.upper()) for glob in globs)


def _board_history(database: HistoryDatabase, names: Names, number: int, wanted: Wanted) -> BoardHistory:
    held = queries.held_by(database, names, number)
    cells = [one for one in queries.cells_of(database, names, number) if wanted(one.requirement)]
    return BoardHistory(
        board=names.boards[number],
        runs=tuple(held),
        columns=_columns(held, cells),
        breaks=_breaks(database, names, number, wanted),
        regressions=tuple(_regressions(database, names, number, max(held), wanted)) if held else (),
        flaky=_flaky(database, names, number, wanted),
        trends=tuple(trends(queries.latency_of(database, names, number, wanted))),
    )


def _columns(held: Mapping[int, Versions], cells: Iterable[Counted]) -> tuple[VersionColumn, ...]:
    runs: dict[Said, list[int]] = defaultdict(list)
    for run, versions in held.items():
        runs[_said(versions)].append(run)
    counts: dict[Said, dict[str, dict[Outcome, int]]] = defaultdict(lambda: defaultdict(Counter))
    for one in cells:
        counts[_said(one.versions)][one.requirement][one.outcome] += one.runs
    columns = [
        VersionColumn(dict(said), tuple(own), {id: _cell(outcomes) for id, outcomes in counts[said].items()})
        for said, own in runs.items()
    ]
    # The order of time within equal versions: what differs there is none of the main ones.
    return tuple(sorted(columns, key=lambda column: (order_of(column.versions), column.runs)))


def _said(versions: Versions) -> Said:
    return tuple(board_part(versions).items())


def _cell(outcomes: Mapping[Outcome, int]) -> tuple[Outcome, int, int]:
    deciding = worst(outcomes)
    return deciding, outcomes[deciding], sum(outcomes.values())


def _breaks(database: HistoryDatabase, names: Names, board: int, wanted: Wanted) -> tuple[Break, ...]:
    tests = {
        names.tests[test]: ([id for id in one.requirements or NO_REQUIREMENT if wanted(id)], one.seen)
        for test, one in queries.turns_of(database, names, board).items()
    }
    return tuple(breaks(tests))


def _regressions(
    database: HistoryDatabase, names: Names, board: int, newest: int, wanted: Wanted
) -> Iterator[Turned]:
    for test, one in queries.red_in_the_newest(database, names, board, newest).items():
        if any(map(wanted, one.requirements or NO_REQUIREMENT)):
            found = turned(names.tests[test], one.requirements, one.seen, newest)
            if found is not None:
                yield found


def _flaky(database: HistoryDatabase, names: Names, board: int, wanted: Wanted) -> tuple[Unsteady, ...]:
    """Those first whose verdict changed, then by how often they did not pass."""
    found = [
        one
        for one in queries.unsteady_tests(database, names, board)
        if any(map(wanted, one.requirements or NO_REQUIREMENT))
    ]
    return tuple(
        sorted(found, key=lambda one: (not one.flaky.verdict_changes, -one.flaky.not_passed, one.test))
    )
