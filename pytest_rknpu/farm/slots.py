"""The boards that this process holds: leased, opened, rebuilt when lost, given up when lost again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_rknpu.errors import BoardError, HarnessError
from pytest_rknpu.farm.run import Run, derive_seed

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session import BoardSession, ConnectedSession, SimulatorSession

# A board that was lost this often gets no more tests: it would only cost each of them a timeout.
_LOSSES_BEFORE_QUARANTINE = 2


class Slot:
    """One board in this process. Its lease outlives its sessions: a lost session is rebuilt under it."""

    def __init__(self, board: Board, run: Run, tell: Callable[[str], None]) -> None:
        self.board = board
        self.causes: list[str] = []
        self._run = run
        self._tell = tell
        self._session: BoardSession | SimulatorSession | ConnectedSession | None = None
        self._resources = ExitStack()
        self._reported_cause: str | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lease the board and open a session. Raises BoardError, or a skip where the board cannot be had."""
        from pytest_rknpu.farm.lease import lease, this_process

        run = self._run
        holder = this_process(run.origin.run_id, run.origin.command)
        key = run.lease_key(self.board)
        with lease(key, self.board.name, holder, wait_s=run.wait_s, tell=self._tell):
            self._open()
            try:
                yield
            finally:
                self._close()

    @property
    def session(self) -> BoardSession:
        """The session as it is, alive or not. Raises HarnessError before there is one."""
        if self._session is None:
            raise HarnessError(f"board {self.board.name} is not open; ask for it with the fixture `board`")
        return cast("BoardSession", self._session)  # a simulator's has the attributes that it can have

    @property
    def versions(self) -> dict[str, str]:
        """What was probed; empty where there is no session. What is played is named, lest it mislead."""
        versions = dict(self._session.versions) if self._session is not None else {}
        if self.board.faults:
            versions["faults"] = ", ".join(self.board.faults)
        if self.board.latency_model is not None:
            versions["latency_model"] = f"emulated {self.board.latency_model}"
        return versions

    def prepare(self) -> None:
        """Before each test: rebuild a session that was found dead.

        Raises BoardError, with the first cause, once the board was lost for the second time or not rebuilt.
        """
        self._refuse_if_quarantined()
        if self._session is None or self._session.alive:
            return
        self._lost(self._reported_cause or "the session was found dead")
        self._refuse_if_quarantined()
        self._tell(f"board {self.board.name} was lost ({_first_line(self.causes[0])}); opening it again")
        self._close()
        try:
            self._open()
        except BoardError as error:
            self._lost(str(error))
            self._refuse_if_quarantined()
            raise

    def blame(self, message: str) -> None:
        """Remember what a test said when it lost the board; the quarantine shows it."""
        if self._reported_cause is None and self._session is not None and not self._session.alive:
            self._reported_cause = message

    def _lost(self, cause: str) -> None:
        self.causes.append(cause)
        self._reported_cause = None

    def _refuse_if_quarantined(self) -> None:
        if len(self.causes) >= _LOSSES_BEFORE_QUARANTINE:
            raise BoardError(
                f"board {self.board.name} is in quarantine for the rest of this run: it was lost "
                f"{len(self.causes)} times, first by: {self.causes[0]}"
            )

    def _open(self) -> None:
        from pytest_rknpu.session import open_session

        seed = derive_seed(self._run.origin.seed, f"board {self.board.name}, session {len(self.causes)}")
        self._session = self._resources.enter_context(
            open_session(self.board, seed=seed, run_dir=self._run.report)
        )

    def _close(self) -> None:
        """End the session. What a dead board says to that is no news."""
        dead = self._session is not None and not self._session.alive
        resources, self._resources = self._resources, ExitStack()
        with contextlib.suppress(*(Exception,) if dead else ()):
            resources.close()


class LiveBoard:
    """What the fixture `board` gives: the board's session of the moment, which a rebuild replaces.

    ``soc``, ``versions``, ``facts`` and whatever else a session has are the session's own.
    """

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    @property
    def board(self) -> Board:
        """The board as boards.toml describes it."""
        return self._slot.board

    @property
    def session(self) -> BoardSession:
        """The session itself. Do not keep it: after a loss the next test has another one."""
        return self._slot.session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slot.session, name)

    def __repr__(self) -> str:
        return f"<board {self._slot.board.name}>"


class Slots:
    """The slots of this process by board name, made when first asked for."""

    def __init__(self, run: Run, tell: Callable[[str], None]) -> None:
        self._run = run
        self._tell = tell
        self._slots: dict[str, Slot] = {}

    def of(self, name: str) -> Slot:
        """The slot of a selected board."""
        if name not in self._slots:
            self._slots[name] = Slot(self._run.board(name), self._run, self._tell)
        return self._slots[name]


SLOTS = pytest.StashKey[Slots]()
"""Where `pytest.Config.stash` holds the slots."""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
