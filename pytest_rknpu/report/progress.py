"""How far each board is, in lines for a terminal: pure, so that it can be tested without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_rknpu.report.matrix import Line, Piece
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome

WITHOUT_BOARD = "no board"
_LONGEST_NAME = 24


@dataclass
class BoardProgress:
    """One board: ``done`` of ``total`` tests ended, ``unmet`` counts those that are red, by word.

    ``running`` has the node ids of what runs now with the time of day when it began; only equal boards that
    stand for each other have more than one.
    """

    name: str
    total: int
    done: set[str] = field(default_factory=set)
    unmet: Counter[str] = field(default_factory=Counter)
    running: dict[str, str] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """What is shown first where there is no room for all."""
        if self.running:
            return 0
        return 1 if self.unmet else 2


class Progress:
    """All boards of a run, in the order in which their tests were collected."""

    def __init__(self, planned: Mapping[str, str | None]) -> None:
        """``planned``: the board of each test by node id, None where it is about none."""
        self._board_of = {nodeid: board or WITHOUT_BOARD for nodeid, board in planned.items()}
        totals = Counter(self._board_of.values())
        self.boards = {name: BoardProgress(name, total) for name, total in totals.items()}

    def started(self, nodeid: str, at: str) -> bool:
        """A test begins; whether it is one of those that were planned."""
        if nodeid not in self._board_of:
            return False
        self.boards[self._board_of[nodeid]].running[nodeid] = at
        return True

    def ended(self, result: Result) -> None:
        """A test has its result. Another attempt of the same test is not counted as another test."""
        board = self.boards.get(self._board_of.get(result.nodeid, ""))
        if board is None:
            return
        board.done.add(result.nodeid)
        board.running.pop(result.nodeid, None)
        if result.outcome.red:
            board.unmet[str(result.outcome) if result.tried else "not tried"] += 1

    def lines(self, width: int, height: int) -> list[Line]:
        """At most ``height`` lines of less than ``width`` columns: those that run first, the rest in one."""
        boards = list(self.boards.values())
        if height < 1 or not boards:
            return []
        if len(boards) <= height:
            return list(_table(boards, width))
        chosen = sorted(boards, key=lambda board: board.rank)[: height - 1]
        shown = [board for board in boards if board in chosen]
        rest = [board for board in boards if board not in chosen]
        return [*_table(shown, width), _rest(rest, width)]


def _table(boards: Sequence[BoardProgress], width: int) -> Iterator[Line]:
    if not boards:
        return
    names = min(_LONGEST_NAME, max(len(board.name) for board in boards))
    counts = max(len(_count(board)) for board in boards)
    unmet = max(len(_unmet(board.unmet)) for board in boards)
    for board in boards:
        pieces = [Piece(f"{board.name[:names]:{names}}  {_count(board):>{counts}}")]
        if unmet:
            pieces.append(Piece(f"  {_unmet(board.unmet):{unmet}}", Outcome.FAIL if board.unmet else None))
        pieces.append(Piece(f"  {_now(board)}"))
        yield _cut(pieces, width - 1)


def _rest(boards: Sequence[BoardProgress], width: int) -> Line:
    done, total = sum(len(board.done) for board in boards), sum(board.total for board in boards)
    unmet = sum((board.unmet for board in boards), Counter[str]())
    pieces = [Piece(f"{len(boards)} more boards  {done}/{total}")]
    if unmet:
        pieces.append(Piece(f"  {_unmet(unmet)}", Outcome.FAIL))
    return _cut(pieces, width - 1)


def _count(board: BoardProgress) -> str:
    return f"{len(board.done)}/{board.total}"


def _unmet(unmet: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in unmet.items())


def _now(board: BoardProgress) -> str:
    """What runs; a board whose tests have all ended says nothing."""
    if not board.running:
        return "" if len(board.done) >= board.total else "waiting"
    (nodeid, since), *others = board.running.items()
    more = f" and {len(others)} more" if others else ""
    return f"{since} {_short(nodeid, board.name)}{more}"


def _short(nodeid: str, board: str) -> str:
    """File and test without folders, and without the board, which stands before."""
    path, _, test = nodeid.partition("::")
    test = test.replace(f"[{board}]", "").replace(f"[{board}-", "[")
    return f"{PurePosixPath(path).name}::{test}"


def _cut(pieces: Sequence[Piece], width: int) -> Line:
    """As much as fits; an ellipsis where something is missing."""
    line: list[Piece] = []
    for piece in pieces:
        room = width - sum(len(one.text) for one in line)
        if len(piece.text) > room:
            line.append(Piece(f"{piece.text[: room - 1]}…" if room > 1 else "", piece.outcome))
            break
        line.append(piece)
    return tuple(line)
