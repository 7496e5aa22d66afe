"""How long tests are expected to take, from what an earlier run measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

UNKNOWN_SECONDS = 1.0


@dataclass(frozen=True)
class Measured:
    """A test of an earlier run: its node id, the board or pool that leads its bracket, its duration."""

    nodeid: str
    board: str | None
    seconds: float


def expected_from(
    measured: Iterable[Measured], board_of: Callable[[str], str | None]
) -> Callable[[str], float]:
    """A function that gives the expected seconds of a node id; ``board_of`` names the board of one.

    The same test on the same board, else the median of that test on other boards, else that of all tests; one
    second each where nothing was measured.
    """
    own: dict[str, float] = {}
    others: dict[str, list[float]] = {}
    for test in measured:
        own[test.nodeid] = test.seconds
        others.setdefault(without_board(test.nodeid, test.board), []).append(test.seconds)
    by_test: Mapping[str, float] = {test: statistics.median(all) for test, all in others.items()}
    anything = statistics.median(own.values()) if own else UNKNOWN_SECONDS

    def expected(nodeid: str) -> float:
        seconds = own.get(nodeid)
        if seconds is None:
            seconds = by_test.get(without_board(nodeid, board_of(nodeid)), anything)
        return seconds

    return expected


def without_board(nodeid: str, board: str | None) -> str:
    """The node id without the name of its board: that of the same test on any other one."""
    before, bracket, inside = nodeid.partition("[")
    if board is None or not bracket or not inside.startswith(board):
        return nodeid
    return f"{before}[{inside.removeprefix(board)}"
