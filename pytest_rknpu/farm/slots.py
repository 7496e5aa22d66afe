"""The boards that this process holds: leased, opened, rebuilt when lost, given up when lost again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_rknpu.errors import BoardError, BoardQuarantined, HarnessError, LeaseLost
from pytest_rknpu.farm.recovery import Recovery, Session
from pytest_rknpu.farm.run import Run, derive_seed

if TYPE_CHECKING:
    from pytest_rknpu.farm.holding import Lease
    from pytest_rknpu.farm.pools import Pool
    from pytest_rknpu.farm.power import Power
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session import BoardSession


class Slot:
    """One board of a pool in this process. Its lease outlives its sessions: a lost session is rebuilt under
    it (`Recovery`), and a lost lease is asked for again. Where a board is given up, an equal one takes its
    place.
    """

    def __init__(self, pool: Pool, run: Run, tell: Callable[[str], None]) -> None:
        self.board = pool.board
        self.ran_on: str | None = None
        """Which one is or was held, where several come into question: its name, or its labgrid place."""
        self._pool = pool
        self._run = run
        self._tell = tell
        self._recoveries: dict[str, Recovery] = {}
        self._recovery = self._own = self._recovery_of(pool.board.name)
        self._lease: Lease | None = None
        self._leases = ExitStack()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Lease the board and open a session. Raises BoardError, or a skip where the board cannot be had."""
        self._own.refuse_if_given_up()
        try:
            try:
                self._open()
            except (
                pytest.fail.Exception
            ) as error:  # the timeout of a test: else each of the rest would show it
                self._own.give_up(f"getting it was interrupted: {error}")
                raise
            yield
        finally:
            self._close()

    @property
    def given_up(self) -> bool:
        """Whether it gets no more tests."""
        return self._own.given_up

    @property
    def session(self) -> BoardSession:
        """The session as it is, alive or not. Raises HarnessError before there is one."""
        session = self._recovery.session
        if session is None:
            raise HarnessError(f"board {self.board.name} is not open; ask for it with the fixture `board`")
        return cast("BoardSession", session)  # a simulator's has the attributes that it can have

    @property
    def versions(self) -> dict[str, str]:
        """What was probed; empty where there is no session. What is played is named, lest it mislead."""
        session = self._recovery.session
        versions = dict(session.versions) if session is not None else {}
        if self.board.faults:
            versions["faults"] = ", ".join(self.board.faults)
        if self.board.latency_model is not None:
            versions["latency_model"] = f"emulated {self.board.latency_model}"
        return versions

    def prepare(self) -> None:
        """Before each test: rebuild a session that was found dead, and lease again what was taken from us.

        Raises BoardQuarantined, with the first cause, for a board that gets no more tests.
        """
        self._own.refuse_if_given_up()
        taken = self._why_taken()
        if taken is not None:
            return self._go_on_after(taken)
        try:
            self._recovery.prepare()
        except BoardQuarantined as error:
            if not self._others():
                raise
            self._tell(f"{_first_line(str(error))}; going on with another board of {self.board.name}")
            self._close()
            self._open()

    def examine(self) -> str:
        """After a test that lost the board: what can be found out about that, as lines below its message."""
        if self._lease is None or self._why_taken() is not None:  # it is another's by now
            return ""
        return self._recovery.examine()

    def require_lease(self) -> None:
        """After each test: raises LeaseLost where somebody else may have used the board meanwhile."""
        if self._lease is not None:
            self._lease.check()

    def blame(self, message: str) -> None:
        """Remember what a test said when it lost the board; the quarantine shows it."""
        self._recovery.blame(message)

    def _open(self) -> None:
        """Hold a board and open a session with it, with the next one where that is in vain."""
        while True:
            self._hold()
            try:
                return self._recovery.open()
            except BoardError as error:
                if not self._others():
                    raise
                self._tell(f"{_first_line(str(error))}; trying another board of {self.board.name}")
                self._close()

    def _go_on_after(self, taken: str) -> None:
        """Hold a board again, perhaps an equal one, after the one that we had was taken away."""
        before = self._recovery
        before.cut()
        before.blame(taken)
        self._let_go()
        self._hold()
        if self._recovery is before:
            return before.prepare()
        self._tell(f"{_first_line(taken)}; going on with {self.ran_on}")
        before.close()
        return self._recovery.open()

    def _others(self) -> list[Board]:
        """Boards to try in place of the one at hand. What a labgrid filter finds is not ours to choose."""
        return [board for board in self._pool.boards if not board.filter and not self._is_given_up(board)]

    def _is_given_up(self, board: Board) -> bool:
        return board.name in self._recoveries and self._recoveries[board.name].given_up

    def _close(self) -> None:
        try:
            self._recovery.close()
        finally:
            self._let_go()

    def _hold(self) -> None:
        from pytest_rknpu.farm.holding import Asking, hold_one
        from pytest_rknpu.farm.lease import this_process

        run = self._run
        holder = this_process(run.origin.run_id, run.origin.command)
        asking = Asking(run.boards_file or Path(), holder, run.wait_s, self._tell)
        boards = [board for board in self._pool.boards if not self._is_given_up(board)]
        if not boards:
            self._own.give_up(f"all {len(self._pool.boards)} boards of {self.board.name} were given up")
            self._own.refuse_if_given_up()
        try:
            self._lease = self._leases.enter_context(hold_one(boards, asking))
        except BoardError as error:
            self._own.give_up(f"it could not be had: {error}")
            raise
        which = self._lease.which
        self.ran_on = which if which != self.board.name else None
        self._recovery = self._recovery_of(which)
        self._lease.when_lost(self._recovery.cut)

    def _let_go(self) -> None:
        self._lease = None
        leases, self._leases = self._leases, ExitStack()
        leases.close()

    def _why_taken(self) -> str | None:
        try:
            self.require_lease()
        except LeaseLost as error:
            return str(error)
        return None

    def _recovery_of(self, which: str) -> Recovery:
        if which not in self._recoveries:
            self._recoveries[which] = Recovery(
                which,
                self._session_with,
                self._tell,
                power=self._power,
                losses=self._run.losses,
                patience_s=self._run.patience_s,
            )
        return self._recoveries[which]

    def _session_with(self, number: int, lost: Session | None) -> AbstractContextManager[Session]:
        from pytest_rknpu.session import open_session

        assert self._lease is not None
        seed = derive_seed(self._run.origin.seed, f"board {self.board.name}, session {number}")
        return open_session(self._lease.board, seed=seed, run_dir=self._run.report, lost=lost)

    def _power(self) -> Power | None:
        from pytest_rknpu.farm.power import power_of

        if self._lease is None or self._why_taken() is not None:  # it is another's by now
            return None
        return power_of(self._lease.board, self._lease)


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
            self._slots[name] = Slot(self._run.pool(name), self._run, self._tell)
        return self._slots[name]


SLOTS = pytest.StashKey[Slots]()
"""Where `pytest.Config.stash` holds the slots."""


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
