"""Stands in for `pytest_rknpu.session`: boards without an agent, which tests can break as they please.

Boards named ``broken...``, or put into `UNREACHABLE`, cannot be opened. Each opening is
noted in ``$RKNPU_FAKE_EVENTS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_rknpu.errors import BoardError, BoardLost
from pytest_rknpu.inventory.socs import find_soc

# The real ones: their contract must not drift away.
from pytest_rknpu.session import FinishReport, fitness_of, found_afterwards, require_fit, restarted  # noqa: F401

UNREACHABLE: set[str] = set()


class BoardSession:
    """A session whose runtime logs what it is told to, and which dies when it is told to."""

    def __init__(self, board: Any, seed: int) -> None:
        self.board = board
        self.seed = seed
        self.soc = find_soc(board.soc)
        self.functions = frozenset({"rknn_init", "rknn_run"})
        self.facts = {"model": {"value": f"fake {board.name}"}}
        self.versions = {
            "bsp": "fake 1",
            "kernel": "6.1",
            "driver": "emulated 0.9.8",
            "runtime": "emulated 2.3.2",
        }
        self.alive = True
        self.log = ""
        self.left_behind: list[str] = []

    def cut(self) -> None:
        """What happens where somebody else has the board."""
        self.alive = False

    def die(self) -> None:
        """What a call looks like on a board that went away."""
        self.alive = False
        raise BoardLost(f"board {self.board.name}: the link ended")


class Npu:
    """What the fixture `npu` gives."""

    def __init__(self, session: BoardSession, record: Any, seed: int) -> None:
        self.session = session
        self.record = record
        self.seed = seed

    def finish(self) -> FinishReport:
        """The log since the last test, and what this one left behind."""
        log, self.session.log = self.session.log, ""
        left, self.session.left_behind = tuple(self.session.left_behind), []
        return FinishReport(left, log)


SimulatorSession = BoardSession


@contextmanager
def open_session(
    board: Any, *, seed: int, run_dir: Path | None = None, lost: BoardSession | None = None
) -> Iterator[BoardSession]:
    """Open a board and say so."""
    note(f"open {board.name} {os.getpid()}")
    if board.name.startswith("broken") or board.name in UNREACHABLE:
        raise BoardError(f"board {board.name}: no route to host")
    session = BoardSession(board, seed)
    try:
        yield session
    finally:
        note(f"close {board.name} {os.getpid()}")


def note(event: str) -> None:
    """Append a line to the events file, whole even from several processes."""
    path = os.environ.get("RKNPU_FAKE_EVENTS")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(event + "\n")
