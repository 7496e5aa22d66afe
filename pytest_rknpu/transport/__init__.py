"""How to reach a board. Every way ends in an execnet gateway, on which the agent is started."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import execnet

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.transport import prelude
from pytest_rknpu.transport.adb import adb_way, find_adb
from pytest_rknpu.transport.connecting import connect
from pytest_rknpu.transport.ssh import ssh_way
from pytest_rknpu.transport.way import NoConnection, Way

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

__all__ = ["Gateway", "NoConnection", "find_adb", "open_gateway"]

_TERMINATE_SECONDS = 2.0


class Gateway:
    """An execnet gateway in a group of its own, so that closing it ends its process and nothing else."""

    def __init__(self, board_name: str, way: Way) -> None:
        self._board_name = board_name
        self._group = execnet.Group()
        try:
            self._gateway, self._io = connect(self._group, way)
        except NoConnection as error:
            raise BoardLost(
                f"board {board_name}: no connection: {error}. Try the same by hand: {way.by_hand}"
            ) from error

    def start(self, source: str) -> Any:
        """Run ``source`` on the board; returns the execnet channel to it.

        Raises BoardLost where the gateway has ended already.
        """
        try:
            return self._gateway.remote_exec(source)
        except (OSError, EOFError) as error:
            raise BoardLost(f"board {self._board_name}: the link ended before the agent started") from error

    def last_words(self) -> str:
        """The end of what the program behind the link (ssh, adb, Python) wrote to stderr."""
        return self._io.said().strip()

    def kill(self) -> None:
        """End the near process at once, also while another thread is writing to it."""
        self._io.kill()

    def close(self) -> None:
        """End the far process, by force after two seconds. Safe to call twice."""
        with contextlib.suppress(OSError, EOFError):
            self._group.terminate(timeout=_TERMINATE_SECONDS)


def open_gateway(board: Board) -> Gateway:
    """Connect to ``board``; raises BoardLost with the command to try by hand."""
    find = _WAYS[board.transport or "local"]
    try:
        way = find(board)
    except NoConnection as error:
        raise BoardLost(f"board {board.name}: no connection: {error}") from error
    return Gateway(board.name, way)


def _local_way(board: Board) -> Way:
    """A process of this host: the emulator, and boards that the suites run on."""
    python = board.python if "python" in board.model_fields_set else sys.executable
    return Way(
        command=(python, "-u", "-c", prelude.source()),
        by_hand=f"{shlex.quote(python)} -c pass",
        python=python,
        remedies={},
    )


def _no_way(board: Board) -> Way:
    """A place of a labgrid farm is reached over ssh once it is held (`labgrid.hold_place`), not before."""
    raise NoConnection("its place at the labgrid coordinator is not held, so that nobody may use it")


_WAYS: Mapping[str, Callable[[Board], Way]] = {
    "local": _local_way,
    "ssh": ssh_way,
    "adb": adb_way,
    "labgrid": _no_way,
}
