"""What becomes of a board that is lost: every way through `Recovery`, with boards that cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_rknpu.errors import (
    BoardChanged,
    BoardError,
    BoardLost,
    BoardQuarantined,
    BoardUnfit,
    HarnessError,
)
from pytest_rknpu.farm import recovery as module
from pytest_rknpu.farm.power import PowerFailure
from pytest_rknpu.farm.recovery import Recovery


@dataclass
class FakeSession:
    """A session; ``boot_id`` is that of the board at the time."""

    number: int
    boot_id: str | None
    alive: bool = True
    identity: dict[str, int] = field(default_factory=dict)

    def cut(self) -> None:
        self.alive = False


class FakeBoard:
    """A board that does as it is told: ``answers`` are what attempts to open it raise, None where one
    succeeds.
    """

    wait_s = 0.05

    def __init__(self) -> None:
        self.answers: list[BoardError | None] = []
        self.fit: list[BoardError | None] = []
        self.events: list[str] = []
        self.told: list[str] = []
        self.boots = 1
        self.restarts = True
        self.power_error: BoardError | None = None

    @contextmanager
    def open_session(self, number: int, lost: FakeSession | None) -> Iterator[FakeSession]:
        error = self.answers.pop(0) if self.answers else None
        self.events.append(f"open {number} after {None if lost is None else lost.number}")
        if error is not None:
            raise error
        session = FakeSession(number, f"boot {self.boots}")
        yield session
        session.alive = False
        self.events.append(f"close {number}")

    def cycle(self) -> None:
        self.events.append("cycle")
        if self.power_error is not None:
            raise self.power_error
        self.boots += self.restarts

    def __str__(self) -> str:
        return "the switch"


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> FakeBoard:
    fake = FakeBoard()

    def require_fit(session: FakeSession, before: object) -> list[str]:
        error = fake.fit.pop(0) if fake.fit else None
        fake.events.append(f"health of {session.number}")
        if error is not None:
            raise error
        return []

    monkeypatch.setattr("pytest_rknpu.session.require_fit", require_fit)
    monkeypatch.setattr("pytest_rknpu.session.fitness_of", lambda session: f"as in {session.number}")
    monkeypatch.setattr(
        "pytest_rknpu.session.found_afterwards", lambda lost, opened: f"\nfound {opened.number}"
    )
    monkeypatch.setattr(module, "_BETWEEN_ATTEMPTS_S", 0.01)
    return fake


Make = Callable[..., Recovery]


@pytest.fixture
def make(board: FakeBoard) -> Make:
    def make(*, switched: bool = False, losses: int = 2, patience_s: float = 0.0) -> Recovery:
        power: Any = (lambda: board) if switched else (lambda: None)
        tell = board.told.append
        return Recovery("desk", board.open_session, tell, power=power, losses=losses, patience_s=patience_s)

    return make


def lose(recovery: Recovery, message: str = "the link ended\nand a log") -> str:
    """What a test does that loses the board; what is found out about it."""
    recovery.session.alive = False  # type: ignore[union-attr]
    found = recovery.examine()
    recovery.blame(message)
    return found


NO_ROUTE = BoardLost("no route\nwith details")


def test_a_loss_is_looked_at_and_the_new_session_used_once_it_is_fit(make: Make, board: FakeBoard) -> None:
    recovery = make()
    recovery.open()
    before = recovery.session
    assert lose(recovery) == "\nfound 1"
    assert recovery.session is before  # what the test still does is about the board that it lost
    assert board.events == ["open 0 after None", "close 0", "open 1 after 0"]
    recovery.prepare()
    assert recovery.session.number == 1  # type: ignore[union-attr]
    assert board.events[3:] == ["health of 1"]
    assert board.told == [
        "board desk was lost (the link ended); opening it again",
        "board desk is back and found fit",
    ]


def test_a_loss_that_nobody_looked_at_is_dealt_with_all_the_same(make: Make, board: FakeBoard) -> None:
    recovery = make()
    recovery.open()
    recovery.session.alive = False  # type: ignore[union-attr]
    recovery.prepare()
    assert recovery.session.number == 1  # type: ignore[union-attr]
    assert "the session was found dead" in board.told[0]


def test_as_many_losses_as_are_allowed_and_then_quarantine_with_the_first_cause(
    make: Make, board: FakeBoard
) -> None:
    recovery = make(losses=3)
    recovery.open()
    for cause in ("one", "two", "three"):
        recovery.prepare()
        lose(recovery, cause)
    for _ in range(2):
        with pytest.raises(BoardQuarantined, match=r"desk is in quarantine.* lost 3 times, first by: one$"):
            recovery.prepare()
    assert len([event for event in board.events if event.startswith("open")]) == 4  # the last to look at it
    assert board.events[-1] == "close 3"


def test_a_board_that_does_not_answer_afterwards(make: Make, board: FakeBoard) -> None:
    recovery = make()
    recovery.open()
    board.answers = [NO_ROUTE, NO_ROUTE]
    assert lose(recovery) == "\nafterwards: no route"
    with pytest.raises(
        BoardQuarantined, match=r"lost once, first by: the link ended; it did not come back: no route$"
    ):
        recovery.prepare()
    with pytest.raises(BoardQuarantined, match="first by: the link ended"):
        recovery.open()
    assert board.answers == []


def test_a_board_that_is_starting_is_waited_for(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True, patience_s=60)
    recovery.open()
    board.answers = [NO_ROUTE] * 5
    lose(recovery)
    board.boots += 1
    recovery.prepare()
    assert "cycle" not in board.events
    assert board.told[-1] == "board desk is back and found fit; the board rebooted"


def test_a_board_that_goes_down_while_it_is_looked_at(make: Make, board: FakeBoard) -> None:
    """It answers once more before it restarts."""
    recovery = make(patience_s=60)
    recovery.open()
    lose(recovery)
    board.fit = [BoardLost("gone again")]
    board.answers = [NO_ROUTE] * 2

    def require_fit_once(session: FakeSession, before: object) -> list[str]:
        if board.fit:
            session.alive = False
            raise board.fit.pop()  # type: ignore[misc]
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_rknpu.session.require_fit", require_fit_once)
        recovery.prepare()
    assert recovery.session.number == 4  # type: ignore[union-attr]


def test_looking_at_a_lost_board_never_hides_the_loss(make: Make, board: FakeBoard) -> None:
    recovery = make()
    recovery.open()
    board.answers = [HarnessError("internal")]  # type: ignore[list-item]
    assert lose(recovery) == "\nafterwards: internal"


def test_power_brings_back_what_a_new_session_does_not(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.answers = [NO_ROUTE, NO_ROUTE, NO_ROUTE]  # to look, to come back, while it starts
    lose(recovery)
    recovery.prepare()
    assert board.events[4:] == ["cycle", "open 3 after 0", "open 4 after 0", "health of 4"]
    assert board.told[-2:] == [
        "board desk: no route; cycling its power by the switch",
        "board desk is back and found fit; the board rebooted",
    ]


def test_power_brings_back_a_board_that_answers_and_is_not_well(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.fit = [BoardUnfit("its NPU is busy")]
    lose(recovery)
    recovery.prepare()
    assert board.events[3:] == ["health of 1", "close 1", "cycle", "open 2 after 1", "health of 2"]


def test_a_board_that_is_not_well_after_all_that(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.fit = [BoardUnfit("its NPU is busy"), BoardUnfit("its NPU is busy still")]
    lose(recovery)
    with pytest.raises(BoardQuarantined, match="it did not come back: its NPU is busy still"):
        recovery.prepare()
    assert board.events[-1] == "close 2"


def test_another_board_is_not_switched(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.fit = [BoardChanged("driver was 1, is 2")]
    lose(recovery)
    with pytest.raises(BoardQuarantined, match="did not come back: driver was 1, is 2"):
        recovery.prepare()
    assert "cycle" not in board.events


def test_a_switch_that_fails(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.answers = [NO_ROUTE, NO_ROUTE]
    board.power_error = PowerFailure(
        "power not cycled: uhubctl ended with exit code 1; it said:\n  nothing there"
    )
    lose(recovery)
    with pytest.raises(
        BoardQuarantined, match="first by: the link ended; it did not come back: power not cycled"
    ):
        recovery.prepare()


def test_a_board_that_answers_before_it_was_switched_is_not_back_yet(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    recovery.open()
    board.restarts = False
    board.fit = [BoardUnfit("hung")]
    lose(recovery)
    recovery.prepare()
    assert "its boot_id says that it did not restart" in board.told[-1]
    assert board.events.count("cycle") == 1
    assert len([event for event in board.events if event.startswith("open")]) > 3  # until its time was over


def test_a_board_that_cannot_be_opened_is_not_tried_again(make: Make, board: FakeBoard) -> None:
    recovery = make()
    board.answers = [NO_ROUTE]
    with pytest.raises(BoardLost, match="with details"):
        recovery.open()
    recovery.close()
    for again in (recovery.open, recovery.prepare):
        with pytest.raises(BoardQuarantined, match=r"it could not be opened: no route$"):
            again()
    assert board.events == ["open 0 after None"]


def test_power_opens_a_board_that_is_off_and_that_is_no_loss(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    board.answers = [NO_ROUTE]
    recovery.open()
    assert board.events == ["open 0 after None", "cycle", "open 1 after None", "health of 1"]
    lose(recovery)
    recovery.prepare()
    assert recovery.session.number == 2  # type: ignore[union-attr]


def test_power_does_not_help_a_board_without_its_library(make: Make, board: FakeBoard) -> None:
    recovery = make(switched=True)
    board.answers = [BoardError("no librknnrt.so")]
    with pytest.raises(BoardError, match=r"no librknnrt\.so"):
        recovery.open()
    assert board.events == ["open 0 after None"]


def test_a_board_that_is_asked_for_again_was_not_lost(make: Make, board: FakeBoard) -> None:
    """Tests of two boards in turns: the fixture ends and begins again."""
    recovery = make()
    for _ in range(3):
        recovery.prepare()
        recovery.open()
        recovery.prepare()
        assert recovery.examine() == ""
        recovery.close()
        recovery.blame("something in the tear-down")
    assert board.told == []
    assert [event.split()[0] for event in board.events] == ["open", "close"] * 3


def test_a_loss_in_the_last_test_counts_when_the_board_is_asked_for_again(
    make: Make, board: FakeBoard
) -> None:
    recovery = make()
    recovery.open()
    lose(recovery, "first")
    recovery.close()
    recovery.prepare()
    recovery.open()
    recovery.prepare()
    assert board.told[0] == "board desk was lost (first); opening it again"
    assert board.events[-1] == "health of 2"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), pytest.fail.Exception("Timeout (>1.0s)")])
def test_an_interrupted_recovery_is_a_loss(make: Make, board: FakeBoard, interruption: BaseException) -> None:
    recovery = make()
    recovery.open()
    board.fit = [interruption]  # type: ignore[list-item]
    lose(recovery, "first")
    with pytest.raises(type(interruption)):
        recovery.prepare()
    with pytest.raises(BoardQuarantined, match="lost 2 times, first by: first"):
        recovery.prepare()
