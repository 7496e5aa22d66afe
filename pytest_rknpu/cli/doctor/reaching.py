"""Whether a board can be reached from here: as far as its door, without a login, a lease or a session."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from pytest_rknpu.cli.doctor.bounded import ask, why_not_reached
from pytest_rknpu.cli.doctor.finding import BOARD, Finding, note, ok, problem
from pytest_rknpu.cli.doctor.programs import AdbDevices
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.transport import NoConnection
from pytest_rknpu.transport.adb import network_address, usable_device
from pytest_rknpu.transport.diagnosis import explain
from pytest_rknpu.transport.ssh import accept_by_hand, ssh_knock

WHAT = "reach"
_DEFAULT_COORDINATOR_PORT = 20408
_KEYGEN_S = 10.0
_AT_THE_DOOR = re.compile(r"Permission denied \(")
_BEHIND_A_JUMP_HOST = "UNKNOWN port 65535"
_NEW_HOST_KEY = re.compile(r"you have requested strict checking")
_FORGET = re.compile(r"ssh-keygen -f .*")
_OFFENDING = re.compile(r"Offending \w+ key in (.+):\d+")

#: What ssh says -> the edit or command that mends it. ``{key}`` is the start of an edit of the board's table.
_MENDS: Mapping[str, str] = MappingProxyType(
    {
        "REMOTE HOST IDENTIFICATION HAS CHANGED": "{forget}",
        "you have requested strict checking|Host key verification failed": "{accept}",
        "Can't open user config file|[Bb]ad configuration option|Bad owner": '{key} "ssh_config"',
        f"{_BEHIND_A_JUMP_HOST}|stdio forwarding failed|open failed": "{jump}",
        "Could not resolve hostname": '{key} "host"',
        "Connection refused": 'on the board: systemctl enable --now ssh; or {key} "port"',
        "timed out|No route to host|unreachable": 'switch the board on; or {key} "host"',
    }
)


def edit(file: Path, board: Board) -> str:
    """The start of an edit of this board's table; the key's name comes behind it."""
    return f'edit {file}: [[board]] "{board.name}", key'


def reach(file: Path, board: Board, adb: AdbDevices, seconds: float) -> Finding:
    """Knock at one board that this host has all for."""
    if board.transport == "ssh":
        return _ssh(file, board, seconds)
    return _adb(file, board, adb, seconds)


def _ssh(file: Path, board: Board, seconds: float) -> Finding:
    where = f"{BOARD}{board.name}"
    way = ssh_knock(board, max(1, int(seconds)))
    try:
        answer = ask(way.command, seconds + 1)
    except OSError as error:
        return problem(WHAT, where, f"ssh cannot be started: {error.strerror}", way.by_hand)
    known = "its host key is known" if board.host_key != "unchecked" else "its host key is not looked at"
    if answer.code == 0:
        return ok(WHAT, where, f"answers ssh, {known}, and it lets anybody in")
    if _AT_THE_DOOR.search(answer.said) and _BEHIND_A_JUMP_HOST not in answer.said:
        return ok(WHAT, where, f"answers ssh, {known}; nobody logged in (rknpu probe does)")
    if answer.code is None:
        says = f"no answer within {seconds:g} s"
        return problem(WHAT, where, says, f'switch the board on; or {edit(file, board)} "host"')
    says = explain(way, answer.code, answer.said)
    mend = _mend(file, board, answer.said, way.by_hand)
    if board.host_key == "accept-new" and _NEW_HOST_KEY.search(answer.said):
        return note(WHAT, where, "answers ssh; its host key is new, and the first run takes it", mend)
    return problem(WHAT, where, says, mend)


def _mend(file: Path, board: Board, said: str, by_hand: str) -> str:
    for pattern, mend in _MENDS.items():
        if re.search(pattern, said):
            return mend.format(
                key=edit(file, board),
                accept=accept_by_hand(board),
                forget=_forget(board, said),
                jump=_jump(file, board),
            )
    return by_hand


def _jump(file: Path, board: Board) -> str:
    """What is between here and the board is named by boards.toml, or by the configuration of ssh alone."""
    if board.jump is not None:
        return f'{edit(file, board)} "jump" (or "key")'
    config = ("-F", board.ssh_config) if board.ssh_config else ()
    command = shlex.join(["ssh", "-G", *config, str(board.host)])
    return f"mend ProxyJump or ProxyCommand in the ssh configuration; {command} shows which"


def _forget(board: Board, said: str) -> str:
    """The command that forgets a host key: the one that ssh itself names, where it does."""
    named = _FORGET.search(said)
    if named is not None:
        return named[0].strip()
    host = f"[{board.host}]:{board.port}" if board.port not in (None, 22) else str(board.host)
    file = _OFFENDING.search(said)
    return shlex.join(["ssh-keygen", *(("-f", file[1]) if file else ()), "-R", host])


def _adb(file: Path, board: Board, adb: AdbDevices, seconds: float) -> Finding:
    where = f"{BOARD}{board.name}"
    key = "device_id" if board.runtime == "connected" else "serial"
    serial = board.device_id if board.runtime == "connected" else board.serial
    try:
        states = adb.states()
        address = network_address(serial)
        if address is not None and serial not in states:
            return _network_device(where, board, address, seconds)
        return ok(WHAT, where, f"adb device {usable_device(states, serial)} is there")
    except NoConnection as error:
        says = str(error).replace("set serial ", f"set {key} ").replace("serial in", f"{key} in")
        return problem(WHAT, where, says, f'adb devices -l; then {edit(file, board)} "{key}"')


def _network_device(where: str, board: Board, address: tuple[str, int], seconds: float) -> Finding:
    """A device in the network that adb does not list: a run connects to it, but not for a connected board."""
    name = f"{address[0]}:{address[1]}"
    reason = why_not_reached(*address, seconds)
    if reason is not None:
        says = f"adb lists no {name}, and nothing takes a connection there: {reason}"
        return problem(WHAT, where, says, "on the board, over USB: adb tcpip 5555")
    if board.runtime == "connected":
        says = f"something answers at {name}, but adb is not connected to it"
        return problem(WHAT, where, says, f"adb connect {name}")
    return ok(WHAT, where, f"something answers at {name}; a run does adb connect")


def coordinator(address: str, seconds: float) -> Finding:
    """Whether the coordinator of a labgrid farm takes connections."""
    where = f"labgrid coordinator {address}"
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        host, port = address, str(_DEFAULT_COORDINATOR_PORT)
    reason = why_not_reached(host.strip("[]"), int(port), seconds)
    if reason is None:
        return ok(WHAT, where, "takes connections; no place was asked for")
    mend = 'on that host: labgrid-coordinator; or export LG_COORDINATOR=HOST:PORT, or edit key "coordinator"'
    return problem(WHAT, where, reason, mend)


def key_file(file: Path, board: Board) -> Iterator[Finding]:
    """Whether ssh takes the private key that boards.toml names, as far as shows without using it."""
    if board.key is None or not os.path.isfile(board.key):
        return  # that it is not there is told with what the board needs
    path, where, word = Path(board.key), f"{BOARD}{board.name}", shlex.quote(board.key)
    status = path.stat()
    try:
        with path.open("rb") as content:
            begins = content.read(4096)
    except OSError as error:
        yield problem(
            "key", where, f"key {path} cannot be read: {error.strerror}", f"sudo chown $USER {word}"
        )
        return
    if b"PRIVATE KEY-----" not in begins:
        says = f"key {path} is no private key"
        yield problem("key", where, says, f'{edit(file, board)} "key": the private one, without .pub')
    elif status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        says = f"key {path} can be read by others (mode {stat.S_IMODE(status.st_mode):o}), so ssh ignores it"
        yield problem("key", where, says, f"chmod 600 {word}")
    elif _has_passphrase(path):
        says = f"key {path} has a passphrase, and nobody is asked for it: an agent has to hold it"
        yield note("key", where, says, f"ssh-add {word}")


def _has_passphrase(path: Path) -> bool:
    try:
        answer = ask(["ssh-keygen", "-y", "-P", "", "-f", str(path)], _KEYGEN_S)
    except OSError:
        return False
    return "incorrect passphrase" in answer.said
