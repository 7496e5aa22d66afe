"""What the page says of each board, in words and rows: pure, so that it can be tested without a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_rknpu.history.overview import BoardHistory, History
from pytest_rknpu.history.queries import RunAt, Unsteady
from pytest_rknpu.history.text import (
    and_more,
    bounds_of,
    changed,
    counts_of,
    ends_of,
    name_of,
    open_first,
    plural,
    samples_of,
    seeds_of,
    turns_of,
)
from pytest_rknpu.history.timeline import Break, alike
from pytest_rknpu.history.trends import Point, Trend, steps
from pytest_rknpu.history.versions import differences, in_brief, title_of, value_of
from pytest_rknpu.verdict import REQUIREMENTS, Outcome


@dataclass(frozen=True)
class BreakRow:
    """One break. ``state`` is said first; ``requirement`` has its text as ``title``."""

    requirement: str
    title: str
    state: str
    outcome: str
    first: str
    first_versions: str
    changed: str
    last_pass: str
    again: str
    tests: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class MatrixRow:
    """What a requirement came to with each set of versions: (outcome, words), None where no run has it."""

    requirement: str
    title: str
    cells: tuple[tuple[str, str] | None, ...]


@dataclass(frozen=True)
class VersionRow:
    """One version in all sets that a board had."""

    title: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class BoardPart:
    """A board's part of the page. ``id`` names it in links; ``columns``: the sets' short names and runs."""

    id: str
    title: str
    evidence: str
    summary: str
    regressions: tuple[str, ...]
    breaks: tuple[BreakRow, ...]
    transient: tuple[BreakRow, ...]
    columns: tuple[tuple[str, str], ...]
    common: str
    versions: tuple[VersionRow, ...]
    matrix: tuple[MatrixRow, ...]
    flaky: tuple[tuple[str, ...], ...]


FLAKY_COLUMNS = ("requirement", "test", "outcomes", "how often", "order", "seeds", "versions")
POINT_COLUMNS = ("run", "quantile", "ms", "at least", "at most", "samples", "outcome", "disturbed by")


def board_part(history: History, board: BoardHistory, number: int) -> BoardPart:
    """All but the drawings."""
    newest = history.runs[board.runs[-1]] if board.runs else None
    common = _common(board)
    ordered = open_first(board.breaks)
    return BoardPart(
        id=f"board-{number}",
        title=str(board.board),
        evidence=board.board.evidence,
        summary=f"{plural(len(board.runs), 'run')}; the newest is {newest.run_id}" if newest else "no runs",
        regressions=tuple(
            f"{', '.join(one.requirements)} {one.test}{and_more(others)}: {one.turn}, {one.before.outcome} "
            f"in {history.runs[one.before.run].run_id}; {changed(one.differs)}"
            for one, *others in alike(board.regressions)
        ),
        breaks=tuple(_break_row(history.runs, one) for one in ordered if not one.transient),
        transient=tuple(_break_row(history.runs, one) for one in ordered if one.transient),
        columns=tuple(
            (f"V{place}", _span_of(history.runs, column.runs))
            for place, column in enumerate(board.columns, 1)
        ),
        common=", ".join(f"{title_of(key)} {value}" for key, value in common.items()),
        versions=tuple(_version_rows(board, common)),
        matrix=tuple(_matrix_rows(board)),
        flaky=tuple(_flaky_row(one) for one in board.flaky),
    )


def _break_row(runs: Sequence[RunAt], one: Break) -> BreakRow:
    span = one.span
    state = "still fails" if one.open else "passes again"
    again = span.passes_again
    return BreakRow(
        requirement=one.requirement or "none",
        title=_text_of(one.requirement),
        state=state if span.first_failure.outcome is Outcome.FAIL else f"{state} (waived)",
        outcome=str(span.first_failure.outcome if one.open else Outcome.PASS),
        first=runs[span.first_failure.run].run_id,
        first_versions=in_brief(span.first_failure.versions),
        changed="never passed before" if span.last_pass is None else changed(one.differs),
        last_pass=runs[span.last_pass.run].run_id if span.last_pass else "",
        again=f"{runs[again.run].run_id}: {in_brief(again.versions)}" if again else "",
        tests=one.tests,
        message=span.first_failure.message,
    )


def _text_of(requirement: str) -> str:
    return REQUIREMENTS[requirement].text if requirement in REQUIREMENTS else ""


def _span_of(runs: Sequence[RunAt], places: Sequence[int]) -> str:
    days = sorted({runs[place].day for place in places})
    return f"{len(places)} runs, {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")


def _common(board: BoardHistory) -> dict[str, str]:
    """The versions that all sets have alike."""
    sets = [column.versions for column in board.columns]
    if not sets:
        return {}
    return {
        key: value for key, value in sets[0].items() if all(other.get(key) == value for other in sets[1:])
    }


def _version_rows(board: BoardHistory, common: Mapping[str, str]) -> list[VersionRow]:
    """Those that differ, the main ones first."""
    sets = [column.versions for column in board.columns]
    keys = dict.fromkeys(key for versions in sets for key in differences({}, versions))
    return [
        VersionRow(title_of(key), tuple(value_of(versions, key) for versions in sets))
        for key in keys
        if key not in common
    ]


def _matrix_rows(board: BoardHistory) -> list[MatrixRow]:
    return [
        MatrixRow(id, _text_of(id), tuple(_cell(column.cells.get(id)) for column in board.columns))
        for id in board.requirements
    ]


def _cell(found: tuple[Outcome, int, int] | None) -> tuple[str, str] | None:
    if found is None:
        return None
    outcome, deciding, runs = found
    return str(outcome), f"{outcome} in {deciding} of {runs}" if deciding < runs else str(outcome)


def _flaky_row(one: Unsteady) -> tuple[str, ...]:
    return (
        ", ".join(one.requirements),
        one.test,
        counts_of(one),
        bounds_of(one),
        turns_of(one),
        seeds_of(one),
        in_brief(one.versions),
    )


@dataclass(frozen=True)
class Plot:
    """The quantiles of one test, model and core mask: one drawing, and its rows as a table."""

    title: str
    words: str
    lines: tuple[Trend, ...]
    changes: tuple[tuple[int, str], ...]
    rows: tuple[tuple[str, ...], ...]


def plots(history: History, board: BoardHistory) -> list[Plot]:
    """One plot per test, model and core mask. ``changes`` are (run, which versions changed there)."""
    together: dict[tuple[str, str, str], list[Trend]] = {}
    for trend in board.trends:
        together.setdefault((trend.test, trend.model, trend.core_mask), []).append(trend)
    return [_plot(history.runs, board, lines) for lines in together.values()]


def _plot(runs: Sequence[RunAt], board: BoardHistory, lines: Sequence[Trend]) -> Plot:
    points = lines[0].points
    software = "" if board.board.evidence == "hardware" else f", {board.board.evidence}: no silicon's times"
    moved = [
        f"{name_of(line)} {100 * step.relative:+.1f} % in {runs[step.after.run].run_id}"
        for line in lines
        for step in steps(line.points)
    ]
    unfit = sum(not point.fit for point in points)
    words = f"{len(points)} runs of {samples_of(lines[0])}{software}; " + "; ".join(
        ends_of(line) for line in lines
    )
    words += f"; {unfit} inconclusive or disturbed (hollow)" if unfit else ""
    words += f"; bounds apart: {', '.join(moved)} (rknpu compare decides)" if moved else ""
    return Plot(
        title=f"{lines[0].what} [{lines[0].test}]",
        words=words,
        lines=tuple(lines),
        changes=tuple(_changes(points)),
        rows=tuple(_point_row(runs, line, point) for line in lines for point in line.points),
    )


def _changes(points: Sequence[Point]) -> list[tuple[int, str]]:
    found = []
    for before, after in pairwise(points):
        differs = differences(before.versions, after.versions)
        if differs:
            found.append((after.run, changed(differs)))
    return found


def _point_row(runs: Sequence[RunAt], line: Trend, point: Point) -> tuple[str, ...]:
    return (
        runs[point.run].run_id,
        name_of(line),
        f"{point.value_ms:.4f}",
        "none" if point.lower_ms is None else f"{point.lower_ms:.4f}",
        "none" if point.upper_ms is None else f"{point.upper_ms:.4f}",
        f"{point.samples} in {point.processes} processes",
        str(point.outcome),
        point.disturbed,
    )
