"""The way to a board over OpenSSH's client (ssh(1), ssh_config(5)).

Nobody is asked for anything (BatchMode), no terminal is allocated (it would change bytes), no forwarding of
the user's configuration is set up, a dead link is noticed within seconds, and host keys are checked unless
boards.toml says otherwise by ``host_key``.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_rknpu.transport.prelude import shell_command
from pytest_rknpu.transport.ssh_words import SSH_REMEDIES
from pytest_rknpu.transport.way import Way

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

_CONNECT_SECONDS = 20
_ALIVE_SECONDS = 5
_ALIVE_MISSED = 3
_SUDO = ("sudo", "-n", "-H", "--")

_HOST_KEY_OPTIONS = {
    "check": ("StrictHostKeyChecking=yes",),
    "accept-new": ("StrictHostKeyChecking=accept-new",),
    "unchecked": (
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "GlobalKnownHostsFile=/dev/null",
    ),
}


def ssh_way(board: Board) -> Way:
    """The way to a board that has ``transport = "ssh"``. Nothing is contacted."""
    python = board.python or "python3"
    before = _SUDO if board.sudo else ()
    arguments = (*_quiet_options(), *_options(board), "--", _destination(board.user, str(board.host)))
    accept = accept_by_hand(board)
    return Way(
        command=("ssh", *arguments, shell_command(python, before=before)),
        by_hand=_hand(
            ("-o", "BatchMode=yes", *_options(board)), board, shlex.join([*before, python, "--version"])
        ),
        python=python,
        remedies={pattern: words.replace("{accept}", accept) for pattern, words in SSH_REMEDIES.items()},
    )


def ssh_knock(board: Board, seconds: int) -> Way:
    """The way to the board's door: its host key is checked, and nobody logs in, as no key is offered.

    A board that answers refuses that ("Permission denied"), or lets everybody in. Nothing is written down,
    also not the key of a board with ``host_key = "accept-new"``: a new one is refused here.
    """
    check = ("StrictHostKeyChecking=yes",) if board.host_key == "accept-new" else ()
    settings = (
        "PreferredAuthentications=none",
        f"ConnectTimeout={seconds}",
        "ConnectionAttempts=1",
        "ControlPath=none",  # else it would be a session of a connection that is open already
        "LogLevel=INFO",
        *check,
    )
    arguments = (*_as_options(settings), *_quiet_options(), *_options(board))
    way = ssh_way(board)
    return replace(way, command=("ssh", *arguments, "--", _destination(board.user, str(board.host)), "true"))


def accept_by_hand(board: Board) -> str:
    """The command that shows a new host key and asks whether to take it."""
    return _hand(("-o", "StrictHostKeyChecking=ask", *_options(board, host_key=False)), board, "true")


def _hand(options: tuple[str, ...], board: Board, command: str) -> str:
    return shlex.join(["ssh", *options, _destination(board.user, str(board.host)), command])


def _quiet_options() -> tuple[str, ...]:
    """What makes ssh a link and nothing else, and lets it notice a dead one."""
    settings = (
        "BatchMode=yes",
        f"ConnectTimeout={_CONNECT_SECONDS}",
        f"ServerAliveInterval={_ALIVE_SECONDS}",
        f"ServerAliveCountMax={_ALIVE_MISSED}",
        "RemoteCommand=none",
        "ClearAllForwardings=yes",
    )
    return ("-T", "-x", "-a", *_as_options(settings))


def _options(board: Board, *, host_key: bool = True) -> tuple[str, ...]:
    """What boards.toml says."""
    return (
        *(_as_options(_HOST_KEY_OPTIONS[board.host_key]) if host_key else ()),
        *_identity(board),
        *(("-p", str(board.port)) if board.port else ()),
        *(("-o", f"ProxyCommand={_proxy_command(board, board.jump)}") if board.jump else ()),
    )


def _identity(board: Board) -> tuple[str, ...]:
    """Configuration file and key. A key that is named is the only one offered."""
    config = ("-F", board.ssh_config) if board.ssh_config else ()
    return (*config, *(("-o", "IdentitiesOnly=yes", *_key_file(board.key)) if board.key else ()))


def _key_file(path: str) -> tuple[str, str]:
    """ssh expands % in the name of a key file, but looks for one that -i names without."""
    if "%" not in path:
        return ("-i", path)
    return ("-o", 'IdentityFile="{}"'.format(path.replace("%", "%%")))


def _proxy_command(board: Board, jump: str) -> str:
    """What ssh's own ``-J`` does, but that our options hold for the jump host too: nobody is asked there.

    ssh gives it to a shell, after it has expanded %: %h and %p are the board's address and port.
    """
    user, _, address = jump.rpartition("@")
    host, port = _host_and_port(address)
    options = (
        *_as_options(("BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={_CONNECT_SECONDS}")),
        *_as_options((f"ServerAliveInterval={_ALIVE_SECONDS}", "RemoteCommand=none")),
        *_identity(board),
        *(("-p", port) if port else ()),
    )
    before = shlex.join(["ssh", "-x", "-a", *options]).replace("%", "%%")
    return f"{before} -W '[%h]:%p' -- {shlex.quote(_destination(user, host)).replace('%', '%%')}"


def _host_and_port(address: str) -> tuple[str, str]:
    """``host``, ``host:port`` or ``[address]:port`` in two parts."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = address.partition(":")
    return host, port


def _destination(user: str | None, host: str) -> str:
    return f"{user}@{host}" if user else host


def _as_options(settings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for setting in settings for part in ("-o", setting))
