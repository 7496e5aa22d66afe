"""How to reach a board. Every way ends in an execnet gateway, on which the agent is started."""

from __future__ import annotations

import contextlib
import shlex
import sys
from typing import TYPE_CHECKING, Any

import execnet

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.transport.connecting import NoConnection, connect

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

__all__ = ["Gateway", "open_gateway"]

_TERMINATE_SECONDS = 2.0


class Gateway:
    """An execnet gateway in a group of its own, so that closing it ends its process and nothing else."""

    def __init__(self, board_name: str, spec: str) -> None:
        self._board_name = board_name
        self._group = execnet.Group()
        try:
            self._gateway = connect(self._group, spec)
        except NoConnection as error:
            raise BoardLost(
                f"board {board_name}: no connection: {error}. Try the same by hand: {_by_hand(spec)}"
            ) from error

    def start(self, source: str) -> Any:
        """Run ``source`` on the board; returns the execnet channel to it.

        Raises BoardLost where the gateway has ended already.
        """
        try:
            return self._gateway.remote_exec(source)
        except (OSError, EOFError) as error:
            raise BoardLost(f"board {self._board_name}: the link ended before the agent started") from error

    def close(self) -> None:
        """End the far process, by force after two seconds. Safe to call twice."""
        with contextlib.suppress(OSError, EOFError):
            self._group.terminate(timeout=_TERMINATE_SECONDS)


def open_gateway(board: Board) -> Gateway:
    """Connect to ``board``; raises BoardLost with the command to try by hand."""
    return Gateway(board.name, gateway_spec(board))


def gateway_spec(board: Board) -> str:
    """The execnet specification for ``board`` (execnet documentation, "Examples for execution").

    The emulator and boards that the suites run on are a local process; ssh takes host, user, port and
    configuration file from boards.toml, whose schema admits neither white space nor a leading dash in them.
    """
    if board.transport != "ssh":
        return f"popen//python={shlex.quote(sys.executable)}"
    destination = f"{board.user}@{board.host}" if board.user else str(board.host)
    options = ["-o BatchMode=yes", *([f"-p {board.port}"] if board.port else [])]
    spec = f"ssh={' '.join([*options, destination])}//python={shlex.quote(board.python or 'python3')}"
    if board.ssh_config:
        spec += f"//ssh_config={board.ssh_config}"
    return spec


def _by_hand(spec: str) -> str:
    """The shell command that does what ``spec`` does."""
    if spec.startswith("popen"):
        return f"{shlex.quote(sys.executable)} -c pass"
    fields = dict(part.split("=", 1) for part in spec.split("//"))
    config = f"-F {shlex.quote(fields['ssh_config'])} " if "ssh_config" in fields else ""
    return f"ssh {config}{fields['ssh']} {fields['python']} --version"
