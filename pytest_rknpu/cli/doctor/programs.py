"""The programs by which boards are reached: ssh, adb, labgrid."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from pytest_rknpu.cli.doctor.bounded import ask
from pytest_rknpu.cli.doctor.finding import HOST, Finding, note, ok, problem
from pytest_rknpu.errors import BoardError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.transport import NoConnection, find_adb
from pytest_rknpu.transport.adb import devices
from pytest_rknpu.transport.labgrid import PYTHON_VARIABLE, labgrid_python

INSTALL_SSH = "apt-get install openssh-client"
INSTALL_ADB = "apt-get install adb"
INSTALL_LABGRID = "pipx install 'labgrid>=25'"
_OLDEST_LABGRID = Version("25")
_LABGRID_VERSION = "import importlib.metadata as m; print(m.version('labgrid'))"
_ANSWER_S = 20.0


@dataclass(frozen=True)
class AdbDevices:
    """What adb lists, asked once for all boards: ``trouble`` says why it could not be asked."""

    client: str | None
    listed: Mapping[str, str]
    trouble: str | None = None

    def states(self) -> Mapping[str, str]:
        """State by serial number. Raises NoConnection."""
        if self.trouble is not None:
            raise NoConnection(self.trouble)
        return self.listed


def adb_devices(boards: Iterable[Board]) -> AdbDevices:
    """What the client of this host lists, where a board needs it: it starts adb's server where none runs."""
    client = None
    try:
        client = find_adb()
        return AdbDevices(client, devices(client) if any(map(_over_adb, boards)) else {})
    except NoConnection as error:
        return AdbDevices(client, {}, str(error))


def _over_adb(board: Board) -> bool:
    return board.transport == "adb" or board.runtime == "connected"


def programs(boards: Sequence[Board], adb: AdbDevices) -> Iterator[Finding]:
    """What is there, and which boards cannot do without what is not."""
    over_ssh = [board.name for board in boards if board.transport in ("ssh", "labgrid")]
    over_adb = [board.name for board in boards if _over_adb(board)]
    of_labgrid = [board.name for board in boards if board.transport == "labgrid"]
    yield _ssh(over_ssh)
    if adb.client is not None:
        yield ok("adb", HOST, adb.client)
    else:
        yield missing("adb", "there is no adb on this host", over_adb, INSTALL_ADB)
    yield _labgrid(of_labgrid)


def missing(what: str, says: str, users: list[str], mend: str) -> Finding:
    """A problem where a board needs it, else a note."""
    if users:
        return problem(what, HOST, f"{says}; {_counted(users)} it", mend)
    return note(what, HOST, f"{says}; no board here needs it", mend)


def _counted(users: list[str]) -> str:
    more = len(users) - 3
    names = ", ".join(users[:3]) + (f" and {more} more" if more > 0 else "")
    return f"{names} {'need' if len(users) > 1 else 'needs'}"


def _ssh(users: list[str]) -> Finding:
    client = shutil.which("ssh")
    if client is None:
        return missing("ssh", "there is no ssh on this host", users, INSTALL_SSH)
    try:
        answer = ask([client, "-V"], _ANSWER_S)
    except OSError as error:
        return missing("ssh", f"{client} cannot be started: {error.strerror}", users, INSTALL_SSH)
    if answer.code != 0 or "OpenSSH" not in answer.said:
        says = f"{client} is not OpenSSH's client ({' '.join(answer.said.split())[:80]})"
        return missing("ssh", says, users, INSTALL_SSH)
    return ok("ssh", HOST, f"{client}, {answer.said.strip().split(',')[0]}")


def _labgrid(users: list[str]) -> Finding:
    try:
        python = labgrid_python()
        answer = ask([python, "-c", _LABGRID_VERSION], _ANSWER_S)
    except BoardError as error:
        return missing("labgrid", str(error).partition(";")[0], users, INSTALL_LABGRID)
    except OSError as error:
        says = f"the Python of labgrid, {python}, cannot be started: {error.strerror}"
        return missing("labgrid", says, users, _other_python(python))
    version = answer.said.strip().splitlines()[0] if answer.code == 0 else None
    try:
        if version is not None and Version(version) >= _OLDEST_LABGRID:
            return ok("labgrid", HOST, f"labgrid {version} ({python})")
    except InvalidVersion:
        pass
    says = f"{python} has {f'labgrid {version}, which is too old' if version else 'no labgrid'}"
    return missing("labgrid", says, users, _other_python(python))


def _other_python(python: str) -> str:
    if os.environ.get(PYTHON_VARIABLE):
        return f"export {PYTHON_VARIABLE}=PYTHON, the one that has labgrid (or unset it)"
    return f"{python} -m pip install 'labgrid>={_OLDEST_LABGRID}'"
