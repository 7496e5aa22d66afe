"""Whether this host has what a board needs. No board is contacted: what only it could tell stays open."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.inventory.schema import Board

DEVICE_TREE = Path("/proc/device-tree/compatible")


@dataclass(frozen=True)
class Availability:
    """``usable`` is None where this host has all it needs and only the board could say more."""

    usable: bool | None
    reason: str | None = None

    def sentence(self) -> str:
        """Say it in one line."""
        word = {True: "usable", False: "not usable", None: "not tried"}[self.usable]
        return f"{word}: {self.reason}" if self.reason else word


def availability(board: Board) -> Availability:
    """Look for what ``board`` needs on this host: modules, programs, files, the device tree."""
    return _CHECKS[board.transport or board.runtime](board)


def _emulator(board: Board) -> Availability:
    for module in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(module) is None:
            return Availability(False, f"the Python module {module} is missing; pip install {module}")
    return Availability(True)


def _simulator(board: Board) -> Availability:
    from pytest_rknpu.toolchain import toolkit_status

    status = toolkit_status()
    if status.version is None:
        return Availability(False, f"{status.reason}; install it with: {status.install_command}")
    return Availability(True, f"RKNN-Toolkit2 {status.version}")


def _connected(board: Board) -> Availability:
    """RKNN-Toolkit2 drives it, and brings its own adb."""
    toolkit = _simulator(board)
    if not toolkit.usable:
        return toolkit
    return Availability(None, f"{toolkit.reason} is here; the board was not contacted")


def _ssh(board: Board) -> Availability:
    if shutil.which("ssh") is None:
        return Availability(False, "there is no ssh on this host; install an OpenSSH client")
    for name, file in (("ssh_config", board.ssh_config), ("key", board.key)):
        if file is not None and not os.path.isfile(file):
            return Availability(False, f"{name} {file} {_instead_of_a_file(file)}")
    return Availability(None, "ssh is here; the board was not contacted")


def _instead_of_a_file(path: str) -> str:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "is not there"
    except OSError as error:  # a folder above it may be closed to this user
        return f"cannot be looked at: {error.strerror}"
    return "is no file"


def _labgrid(board: Board) -> Availability:
    from pytest_rknpu.errors import BoardError
    from pytest_rknpu.transport.labgrid import coordinator_of, labgrid_python

    try:
        labgrid_python()
    except BoardError as error:
        return Availability(False, str(error))
    way = _ssh(board)
    if way.usable is False:
        return way
    return Availability(
        None, f"labgrid and ssh are here; coordinator {coordinator_of(board)} was not contacted"
    )


def _adb(board: Board) -> Availability:
    from pytest_rknpu.transport import NoConnection, find_adb

    try:
        client = find_adb()
    except NoConnection as error:
        return Availability(False, str(error))
    return Availability(None, f"{client} is here; the board was not contacted")


def _local(board: Board) -> Availability:
    if board.stand_in:
        return Availability(None, f"a stand-in behind {board.python}; it was not started")
    try:
        entries = DEVICE_TREE.read_bytes().decode("ascii", "replace").strip("\0").split("\0")
    except OSError:
        return Availability(
            False, f"{DEVICE_TREE} cannot be read: this machine is no {board.soc} board, or hides it"
        )
    if not board.chip.matches_device_tree(entries):
        return Availability(False, f"this machine is {', '.join(entries)}, not {board.soc}")
    return Availability(None, f"this machine is a {board.soc}; its NPU was not tried")


_CHECKS: Mapping[str, Callable[[Board], Availability]] = {
    "emulator": _emulator,
    "simulator": _simulator,
    "connected": _connected,
    "ssh": _ssh,
    "adb": _adb,
    "labgrid": _labgrid,
    "local": _local,
}
