"""Boards against requirements, as text: pure, so that its layout can be tested without a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import REQUIREMENTS, Outcome, worst

_GAP = "  "
_NARROWEST_COLUMN = 4


@dataclass(frozen=True)
class Cell:
    """What all tests of one requirement on one board come to: ``deciding`` of ``tests`` had ``outcome``."""

    outcome: Outcome
    deciding: int
    tests: int

    def __str__(self) -> str:
        return (
            str(self.outcome)
            if self.deciding == self.tests
            else f"{self.outcome} {self.deciding}/{self.tests}"
        )


@dataclass(frozen=True)
class Piece:
    """A bit of a line; ``outcome`` asks for its colour."""

    text: str
    outcome: Outcome | None = None


Line = tuple[Piece, ...]


def matrix_of(results: Iterable[Result]) -> Mapping[str, Mapping[str, Cell]]:
    """Requirement, then board, to the cell; requirements in the catalogue's order, boards as they came.

    Tests that are about no board, or that name no requirement, have no place in it.
    """
    collected: dict[str, dict[str, list[Outcome]]] = {}
    for result in results:
        if result.board is not None:
            for id in result.requirement:
                collected.setdefault(id, {}).setdefault(result.board, []).append(result.outcome)
    order = {id: place for place, id in enumerate(REQUIREMENTS)}
    return {
        id: {board: _cell(outcomes) for board, outcomes in collected[id].items()}
        for id in sorted(collected, key=lambda id: order.get(id, len(order)))
    }


def matrix_lines(results: Sequence[Result], width: int) -> list[Line]:
    """The matrix in lines of at most ``width`` columns: as many boards side by side as fit, the rest below.

    A name that does not fit at all is cut.
    """
    matrix = matrix_of(results)
    boards = list(dict.fromkeys(result.board for result in results if result.board is not None))
    shown = [board for board in boards if any(board in row for row in matrix.values())]
    if not shown:
        return []
    first = max(map(len, [*matrix, "requirement"]))
    if first + len(_GAP) + _NARROWEST_COLUMN > width:
        first = max(map(len, matrix))
    room = max(_NARROWEST_COLUMN, width - first - len(_GAP))
    lines: list[Line] = []
    for group in _side_by_side(shown, matrix, room):
        if lines:
            lines.append(())
        lines += _table(group, matrix, first, room)
    return lines


def _cell(outcomes: Sequence[Outcome]) -> Cell:
    deciding = worst(outcomes)
    return Cell(deciding, outcomes.count(deciding), len(outcomes))


def _column_width(board: str, matrix: Mapping[str, Mapping[str, Cell]], room: int) -> int:
    return min(room, max(len(board), *(len(str(row[board])) for row in matrix.values() if board in row)))


def _side_by_side(
    boards: Sequence[str], matrix: Mapping[str, Mapping[str, Cell]], room: int
) -> list[list[str]]:
    """Groups of boards whose columns fit beside each other."""
    groups: list[list[str]] = []
    left = 0
    for board in boards:
        needed = _column_width(board, matrix, room) + len(_GAP)
        if not groups or needed > left:
            groups.append([])
            left = room + len(_GAP)
        groups[-1].append(board)
        left -= needed
    return groups


def _table(
    boards: Sequence[str], matrix: Mapping[str, Mapping[str, Cell]], first: int, room: int
) -> list[Line]:
    widths = {board: _column_width(board, matrix, room) for board in boards}
    header = [Piece("requirement"[:first].ljust(first))]
    header += [Piece(_GAP + _fit(board, widths[board])) for board in boards]
    lines = [tuple(header)]
    for id, row in matrix.items():
        if any(board in row for board in boards):
            cells = [_piece(row.get(board), widths[board]) for board in boards]
            lines.append((Piece(id.ljust(first)), *cells))
    return [_without_trailing_blanks(line) for line in lines]


def _piece(cell: Cell | None, width: int) -> Piece:
    return Piece(_GAP + _fit(str(cell) if cell else "-", width), cell.outcome if cell else None)


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def _without_trailing_blanks(line: Line) -> Line:
    *head, last = line
    return (*head, Piece(last.text.rstrip(), last.outcome))
