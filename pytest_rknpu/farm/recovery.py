"""Keeps a session with one board: looks at the board when it is lost, rebuilds the session, or gives the
board up.

A board that was lost so often as the run allows, that does not come back, or that comes back as another one,
gets no more tests: it is in *quarantine*, and its first cause is what its remaining tests show.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_rknpu.errors import BoardChanged, BoardError, BoardLost, BoardQuarantined

if TYPE_CHECKING:
    from pytest_rknpu.farm.power import Power
    from pytest_rknpu.session import Fitness

Session = Any
"""Of whatever kind of board: what `pytest_rknpu.session.open_session` gives."""

OpenSession = Callable[[int, "Session | None"], AbstractContextManager[Session]]
"""Opens the session with that number, counted from 0; the second argument is the one that was lost before it.
"""

_BETWEEN_ATTEMPTS_S = 2.0


class Recovery:
    """The session with the board ``name``, and what became of the board in this run.

    ``losses``: how often it may be lost until it gets no more tests. ``patience_s``: how long it may take to
    be reached again, since it may be starting anew. ``power`` gives what switches it, if anything.
    """

    def __init__(
        self,
        name: str,
        open_session: OpenSession,
        tell: Callable[[str], None],
        *,
        power: Callable[[], Power | None] = lambda: None,
        losses: int = 2,
        patience_s: float = 60.0,
    ) -> None:
        self.causes: list[str] = []
        self._name = name
        self._open_session = open_session
        self._tell = tell
        self._power = power
        self._losses = losses
        self._patience_s = patience_s
        self._session: Session | None = None
        self._is_open = False
        self._lost: Session | None = None  # until `prepare` has dealt with its loss
        self._resources = ExitStack()
        self._opened = 0
        self._well: Fitness | None = None
        self._cause: str | None = None
        self._given_up: str | None = None

    @property
    def session(self) -> Session | None:
        """The session as tests know it: a lost one until it is replaced, None before there is one."""
        return self._lost if self._lost is not None else self._session

    def open(self) -> None:
        """Open the first session. Raises BoardError: BoardQuarantined where that failed before."""
        self.refuse_if_given_up()
        self._is_open = True
        try:
            self._start()
            if self._well is None:
                self._take_measure()
        except BoardError as error:
            self._end_session()
            why = self._cause_of(error)
            power = self._power() if isinstance(error, BoardLost) else None
            if power is None:
                self.give_up(f"it could not be opened: {why}")
                raise
            self._tell(f"board {self._name} cannot be opened ({why}); cycling its power by {power}")
            self._come_back_by(power, f"it could not be opened: {why}")

    def close(self) -> None:
        """The board is not needed for now: end the session."""
        self._is_open = False
        self._end_session()

    @property
    def given_up(self) -> bool:
        """Whether the board gets no more tests in this run."""
        return self._given_up is not None

    def refuse_if_given_up(self) -> None:
        """Raises BoardQuarantined, with the first cause, for a board that gets no more tests."""
        if self._given_up is not None:
            raise BoardQuarantined(self._given_up)

    def blame(self, message: str) -> None:
        """Remember what a test said when it lost the board: the first is the cause."""
        if self._cause is None and self._is_lost():
            self._cause = message

    def examine(self) -> str:
        """After a test that lost the board: what a new session with it finds, as lines below the loss.

        Empty where nothing was lost, where that is known already, or where there is no agent that could look.
        The new session gets no work before `prepare` has found the board fit.
        """
        lost: Any = self._session
        if not self._is_open or lost is None or lost.alive or self._lost is not None:
            return ""
        if getattr(lost, "identity", None) is None:
            return ""
        from pytest_rknpu.session import found_afterwards

        self._lost = lost
        self._end_session()
        try:
            self._start()
        except Exception as error:  # whatever it is, the loss itself is what the test has to tell
            return f"\nafterwards: {self._cause_of(error)}"
        opened: Any = self._session
        return found_afterwards(lost, opened)

    def prepare(self) -> None:
        """Before each test: rebuild a session that was lost.

        Raises BoardQuarantined, with the first cause, where the board gets no more tests.
        """
        self.refuse_if_given_up()
        if not self._is_open or not self._is_lost():
            return
        self._count(self._cause or "the session was found dead")
        self._tell(f"board {self._name} was lost ({self.causes[-1]}); opening it again")
        try:
            self._come_back()
        except BoardQuarantined:
            raise
        except BaseException:  # Ctrl-C, or the timeout of a test: another attempt is another loss
            self._cause = "its recovery was interrupted"
            raise

    def cut(self) -> None:
        """End the link at once, from any thread: somebody else has the board."""
        if self._session is not None:
            self._session.cut()

    def _count(self, cause: str) -> None:
        """Count a loss. Raises BoardQuarantined where it was one too many."""
        self.causes.append(self._cause_of(cause))
        self._cause = None
        if len(self.causes) >= self._losses:
            self._end_session()
            self._quarantine(self._story())

    def give_up(self, why: str) -> None:
        """The board gets no more tests in this run."""
        self._given_up = (
            f"board {self._name} is in quarantine for the rest of this run: {self._cause_of(why)}"
        )

    def _is_lost(self) -> bool:
        dead = self._session is not None and not self._session.alive
        return self._lost is not None or (self._is_open and dead)

    def _end_session(self) -> None:
        """What a dead board says to that is no news."""
        dead = self._session is not None and not self._session.alive
        resources, self._resources = self._resources, ExitStack()
        with contextlib.suppress(*(Exception,) if dead else ()):
            resources.close()

    def _start(self) -> None:
        """Open a session after the last one; ``_session`` stays that where it fails."""
        number, self._opened = self._opened, self._opened + 1
        self._session = self._resources.enter_context(self._open_session(number, self._session))

    def _take_measure(self) -> None:
        from pytest_rknpu.session import fitness_of

        self._well = fitness_of(self._session)

    def _come_back(self) -> None:
        """By a new session alone, else by power."""
        self._lost = self.session
        why = self._why_not_back(time.monotonic() + self._patience_s)
        if why is None:
            return
        self._end_session()
        power = (
            None if isinstance(why, BoardChanged) else self._power()
        )  # no switching brings the former back
        if power is None:
            self._quarantine(self._story(), why)
        self._tell(f"board {self._name}: {self._cause_of(why)}; cycling its power by {power}")
        self._come_back_by(power, self._story())

    def _why_not_back(self, ends: float) -> BoardError | None:
        """Open a session until then, and see that the board is fit; None where it is."""
        while True:
            try:
                if self._session is None or not self._session.alive:
                    self._end_session()
                    self._reach_within(ends - time.monotonic())
                self._be_fit([])
                return None
            except BoardLost as error:  # it may have been going down just then
                if time.monotonic() >= ends:
                    return error
            except BoardError as error:
                return error

    def _come_back_by(self, power: Power, story: str) -> None:
        try:
            power.cycle()
            self._be_fit(self._reach_within(power.wait_s, restart_of=self._session))
        except BoardError as error:
            self._end_session()
            self._quarantine(story, error)

    def _reach_within(self, seconds: float, restart_of: Session | None = None) -> list[str]:
        """Open a session with a board that may be starting; what is odd about it, in words.

        ``restart_of``: the last session before the board was switched. One of the same start of its kernel
        does not count as long as there is time.
        """
        from pytest_rknpu.session import restarted

        ends = time.monotonic() + seconds
        while True:
            over = time.monotonic() >= ends
            try:
                self._start()
            except BoardError:
                if over:
                    raise
            else:
                if restart_of is None or restarted(restart_of, self._session) is not False:
                    return []
                if over:  # perhaps it has no kernel of its own; whether it is well again is seen next
                    return ["its boot_id says that it did not restart"]
            self._end_session()
            time.sleep(max(0.0, min(_BETWEEN_ATTEMPTS_S, ends - time.monotonic())))

    def _be_fit(self, remarks: list[str]) -> None:
        """Raises BoardError where the board is not what it was."""
        from pytest_rknpu.session import require_fit, restarted

        remarks = remarks + require_fit(self._session, self._well)
        if self._lost is not None and restarted(self._lost, self._session):
            remarks.insert(0, "the board rebooted")
        if self._well is None:
            self._take_measure()
        self._lost = None
        self._tell("; ".join([f"board {self._name} is back and found fit", *remarks]))

    def _story(self) -> str:
        times = "once" if len(self.causes) == 1 else f"{len(self.causes)} times"
        return f"it was lost {times}, first by: {self.causes[0]}"

    def _quarantine(self, story: str, not_back: BoardError | None = None) -> NoReturn:
        last = f"; it did not come back: {self._cause_of(not_back)}" if not_back is not None else ""
        self.give_up(story + last)
        raise BoardQuarantined(self._given_up)

    def _cause_of(self, text: object) -> str:
        """The first line of a message, which is about this board anyway."""
        return str(text).partition("\n")[0].replace(f"board {self._name}: ", "", 1)
