"""The lease of a board, whoever grants it: a lock of this host, or the coordinator of a labgrid farm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_rknpu.farm.lease import FileLease, Holder, lease

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.transport.labgrid import HeldPlace


@dataclass(frozen=True)
class Asking:
    """Who asks for a board of ``boards_file``, for how long; ``tell`` gets a line where it has to wait."""

    boards_file: Path
    holder: Holder
    wait_s: float
    tell: Callable[[str], None]


@dataclass(frozen=True)
class Lease:
    """A board that only this process may use, until the block of `hold_one` ends or it is lost.

    ``board`` has the way to it; ``place`` is what holds it at a labgrid coordinator, None without one.
    """

    board: Board
    file: FileLease
    place: HeldPlace | None = None

    @property
    def which(self) -> str:
        """Which of several it is: the name of the board, or that of its place where a filter found it."""
        return self.place.name if self.place is not None and self.place.found else self.board.name

    def check(self) -> None:
        """Raises LeaseLost where somebody else may use it by now."""
        self.file.check()
        if self.place is not None:
            self.place.check()

    def when_lost(self, tell: Callable[[], None]) -> None:
        """Call ``tell``, from another thread, as soon as that is known, where one can know it."""
        if self.place is not None:
            self.place.when_lost(tell)


@contextmanager
def hold_one(boards: Sequence[Board], asking: Asking) -> Iterator[Lease]:
    """Hold whichever of the boards is free; either all are of one labgrid coordinator, or none is of any.

    Raises BoardError where none can be had, LeaseTimeout among them.
    """
    with ExitStack() as stack:
        place = None
        if boards[0].transport == "labgrid":
            from pytest_rknpu.transport.labgrid import hold_place

            run, wait_s, tell = asking.holder.run_id, asking.wait_s, asking.tell
            place = stack.enter_context(hold_place(boards, run=run, wait_s=wait_s, tell=tell))
            boards = [place.board]  # another run of this host may go there without asking the farm
        keys = {board.name: board.lease_key(asking.boards_file) for board in boards}
        file = stack.enter_context(lease(keys, asking.holder, wait_s=asking.wait_s, tell=asking.tell))
        yield Lease(next(board for board in boards if board.name == file.board), file, place)
