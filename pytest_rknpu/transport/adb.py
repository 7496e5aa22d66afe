"""The way to a board over adb, whose shell has Python there.

The client is the adb of PATH, or the one that RKNN-Toolkit2 brings. adb's own server is started where none
runs, and stays, as adb has it. With the shell protocol of Android 7 and newer (feature ``shell_v2``), stdin,
stdout and stderr are clean and apart. Older adbd, that of Rockchip's Linux SDKs among them, only have a
terminal: Python there makes it transparent before the link begins, and silences stderr.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_rknpu.transport.prelude import shell_command
from pytest_rknpu.transport.way import NoConnection, Way

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

_ADB_SECONDS = 20.0
_SHELL_PROTOCOL = "shell_v2"
_NETWORK_SERIAL = re.compile(r"^(?!usb:).+:[0-9]+$")

# States that `adb devices` shows, but for "device"; further words may follow.
_STATES: Mapping[str, str] = {
    "unauthorized": "does not trust this host yet: confirm the key on the board's screen, or append "
    "~/.android/adbkey.pub to /data/misc/adb/adb_keys (Android) on the board, then run adb reconnect",
    "authorizing": "is still being asked whether it trusts this host; try again",
    "offline": "is connected but does not answer: plug it anew, restart adbd on it, or run adb reconnect",
    "connecting": "is still connecting; try again",
    "no permissions": "may not be used by this user: a udev rule has to allow it, such as "
    'SUBSYSTEM=="usb", ATTR{idVendor}=="2207", MODE="0660", GROUP="plugdev", and then adb kill-server',
    "bootloader": "is in its boot loader; let it boot its system",
    "recovery": "is in recovery; let it boot its system",
    "sideload": "waits for a sideload; let it boot its system",
    "rescue": "is in rescue mode; let it boot its system",
    "host": "is another host, not a board",
}

_REMEDIES: Mapping[str, str] = {
    "target doesn't support PTY args|unrecognized option|unknown option -- T": (
        "this adb client is too old for a clean link; use version 1.0.36 or newer"
    ),
    r"device '?\S*?'? not found|no devices/emulators found|device (?:offline|unauthorized)|error: closed": (
        "the board went away while it was connected to; look at `adb devices`"
    ),
    "inaccessible or not found": (
        "there is no {python}: Android has no Python of its own. Name one by python in boards.toml, or use "
        'the board without: runtime = "connected" (docs/user-models.md)'
    ),
}


def adb_way(board: Board) -> Way:
    """The way to a board that has ``transport = "adb"``; asks adb which devices there are.

    Raises NoConnection for whatever adb is not able to do, with the remedy.
    """
    adb = find_adb()
    _ask(adb, "start-server")
    if network_address(board.serial) is not None:
        _connect(adb, str(board.serial))
    serial = usable_device(devices(adb), board.serial)
    one_stream = not _has_shell_protocol(adb, serial)
    remote = "exec " + shell_command(board.python, one_stream=one_stream)
    shell = (adb, "-s", serial, "shell", *(() if one_stream else ("-T",)))
    return Way(
        command=(*shell, remote),
        by_hand=shlex.join([*shell, f"{board.python} --version"]),
        python=board.python,
        remedies=_REMEDIES,
    )


def find_adb() -> str:
    """Path of an adb client. Raises NoConnection where there is none."""
    found = shutil.which("adb")
    if found:
        return found
    for folder in _toolkit_folders():
        for candidate in sorted(folder.glob("3rdparty/platform-tools/adb/*/adb")):
            if os.access(candidate, os.X_OK):
                return str(candidate)
    raise NoConnection(
        "there is no adb on this host; install it (apt-get install adb), or RKNN-Toolkit2, which brings one "
        "(pip install 'pytest-rknpu[toolkit]')"
    )


def _toolkit_folders() -> list[Path]:
    """Where RKNN-Toolkit2 is installed, without importing it."""
    spec = importlib.util.find_spec("rknn")
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def devices(adb: str) -> dict[str, str]:
    """Serial number to state, as ``adb devices`` shows them."""
    listed = _ask(adb, "devices").partition("List of devices attached")[2]
    rows = (line.split(maxsplit=1) for line in listed.splitlines())
    return {row[0]: row[1].strip() for row in rows if len(row) == 2}


def network_address(serial: str | None) -> tuple[str, int] | None:
    """Host and port of a device in the network (``address:port``); None for any other serial number."""
    if serial is None or not _NETWORK_SERIAL.match(serial):
        return None
    host, _, port = serial.rpartition(":")
    return host, int(port)


def usable_device(found: Mapping[str, str], wanted: str | None) -> str:
    """The serial number of the device that is meant. Raises NoConnection where that is none or unclear."""
    there = ", ".join(f"{serial} ({state})" for serial, state in found.items()) or "none"
    if wanted is None and len(found) > 1:
        raise NoConnection(f"adb has several devices: {there}; set serial in boards.toml")
    serial = wanted or next(iter(found), None)
    if serial is None:
        raise NoConnection(
            "adb has no device: is the board connected to its USB device (OTG) port and adbd running on it? "
            'For a board in the network set serial = "address:port" in boards.toml'
        )
    if serial not in found:
        raise NoConnection(f"adb has no device {serial}; there are: {there}; see serial in boards.toml")
    state = found[serial]
    if state != "device":
        known = next((words for name, words in _STATES.items() if state.startswith(name)), "cannot be used")
        raise NoConnection(f"adb device {serial} ({state}) {known}")
    return serial


def _connect(adb: str, serial: str) -> None:
    """``adb connect``, which does nothing where it is connected already, and fails in words alone."""
    said = _ask(adb, "connect", serial)
    if "connected to" not in said:
        raise NoConnection(
            f"adb connect {serial} did not succeed ({said}): is adbd listening there (adb tcpip 5555 over "
            "USB, or property service.adb.tcp.port)?"
        )


def _has_shell_protocol(adb: str, serial: str) -> bool:
    """Whether the board's adbd and this client know it. Clients before 1.0.36 do not know the question."""
    try:
        return _SHELL_PROTOCOL in _ask(adb, "-s", serial, "features").split()
    except NoConnection:
        return False


def _ask(adb: str, *arguments: str) -> str:
    """What an adb command says on stdout. Raises NoConnection with its own words where it fails."""
    by_hand = shlex.join([adb, *arguments])
    try:
        done = subprocess.run(
            [adb, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ADB_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoConnection(
            f"`{by_hand}` does not answer within {_ADB_SECONDS:g} s; run adb kill-server, and see that no "
            "other program has its port"
        ) from error
    except OSError as error:
        raise NoConnection(f"`{by_hand}` cannot be started: {error.strerror}") from error
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or said
        raise NoConnection(f"`{by_hand}` failed ({' | '.join(words.splitlines()[-4:])})")
    return said
