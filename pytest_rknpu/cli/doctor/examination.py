"""All that is looked at, side by side, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.cli.doctor.bounded import give_up
from pytest_rknpu.cli.doctor.finding import Finding, Severity
from pytest_rknpu.cli.doctor.folders import folders
from pytest_rknpu.cli.doctor.inventory import none_usable, read, usable
from pytest_rknpu.cli.doctor.packages import python_and_packages, toolkit
from pytest_rknpu.cli.doctor.programs import AdbDevices, adb_devices, programs
from pytest_rknpu.cli.doctor.reaching import coordinator, key_file, reach
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.selection import select
from pytest_rknpu.toolchain import toolkit_status
from pytest_rknpu.transport.labgrid import coordinator_of

#: As many boards are knocked at at once.
SIDE_BY_SIDE = 128
_GIVE_UP_EVERY_S = 0.05
_KNOCKED_AT = ("ssh", "adb")


@dataclass(frozen=True)
class Examined:
    """``boards`` are the names of those that were looked at."""

    boards_file: Path
    boards: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether nothing prevents a run."""
        return all(finding.severity is not Severity.PROBLEM for finding in self.findings)


Check = Callable[[], Iterable[Finding]]


def examine(boards_file: Path, globs: Sequence[str], working: Path, seconds: float) -> Examined:
    """Look at this host, at ``boards_file``, and at those of its boards that ``globs`` choose (none: all).

    ``seconds`` is the limit for each answer from the network. Raises ConfigurationError for a glob that no
    board matches.
    """
    file, about_file = read(boards_file)
    boards = select(file.boards, globs) if file is not None else []
    adb = adb_devices(boards)
    prospects = [(board, *usable(boards_file, board)) for board in boards]
    hopeless = sum(not promising for _, promising, _ in prospects)
    coordinators = dict.fromkeys(coordinator_of(board) for board in boards if board.transport == "labgrid")
    checks: list[Check] = [
        python_and_packages,
        lambda: [toolkit(toolkit_status())],
        lambda: programs(boards, adb),
        lambda: folders(working),
        lambda: [*about_file, *none_usable(boards_file, boards, hopeless)],
        *(_coordinator(address, seconds) for address in coordinators),
        *(
            _board(boards_file, board, promising, found, adb, seconds)
            for board, promising, found in prospects
        ),
    ]
    return Examined(boards_file, tuple(board.name for board in boards), tuple(_side_by_side(checks)))


def _side_by_side(checks: Sequence[Check]) -> Iterator[Finding]:
    """What all of them find, in their order. Ctrl-C waits for none."""
    with ThreadPoolExecutor(min(SIDE_BY_SIDE, len(checks))) as pool:
        futures = [pool.submit(lambda check: list(check()), check) for check in checks]
        try:
            for future in futures:
                yield from future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(futures, timeout=_GIVE_UP_EVERY_S).not_done:
                give_up()  # again, as a check may have begun another question meanwhile
            raise


def _coordinator(address: str, seconds: float) -> Check:
    return lambda: [coordinator(address, seconds)]


def _board(
    file: Path, board: Board, promising: bool, found: list[Finding], adb: AdbDevices, seconds: float
) -> Check:
    """What is known of a board already, and what comes of knocking at it where that is worth while."""

    def check() -> list[Finding]:
        keys = list(key_file(file, board))
        knock = promising and (board.transport in _KNOCKED_AT or board.runtime == "connected")
        return [*found, *keys, *([reach(file, board, adb, seconds)] if knock else [])]

    return check
