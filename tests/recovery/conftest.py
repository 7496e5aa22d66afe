"""Boards that get lost: emulated ones, here or behind a real sshd, and a project of tests to run on them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from loopback_sshd import Sshd, running_sshd
from plugin.project import Project

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import Npu, Program, ZeroCopy
from pytest_rknpu.verdict import ItemRecord

PATIENCE_S = 60.0


def until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait for other processes; fails with ``what`` if it does not come about."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"never happened: {what}"
        threading.Event().wait(0.02)


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def board_processes(folder: Path) -> list[str]:
    """The command lines of the processes that live on the "board" whose home is ``folder``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if f"HOME={folder}\0".encode() in environment and command and runs(int(entry.name)):
            found.append(f"{entry.name}: {command}")
    return found


def running(npu: Npu, rounds: int) -> Program:
    """A list that runs the smallest model by zero copy so many times."""
    io = ZeroCopy("a", npu.model("probe_pointwise"))
    program = Program()
    io.open(program)
    with program.repeat(rounds):
        program.run(io.context)
    return program


def npu_of(session: object) -> Npu:
    """The NPU of a session, as a suite's test gets it."""
    return Npu(session, ItemRecord("test", (), 7), 7)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Home:
    """An sshd whose users live in a home of their own: what is on the "board" can be told from all else."""

    sshd: Sshd
    home: Path

    def board(self, **keys: object) -> Board:
        """An emulated board behind it."""
        described = {
            "name": "desk",
            "soc": "rk3588",
            "runtime": "emulator",
            "transport": "ssh",
            "host": "desk-board",
            "ssh_config": str(self.sshd.config),
            "python": sys.executable,
        }
        return Board(**{**described, **keys})  # type: ignore[arg-type]

    def table(self, name: str = "desk", **keys: str) -> str:
        """The same as a table of boards.toml; ``keys`` are written as they are."""
        lines = {
            "name": f'"{name}"',
            "soc": '"rk3588"',
            "runtime": '"emulator"',
            "transport": '"ssh"',
            "host": '"desk-board"',
            "ssh_config": f'"{self.sshd.config}"',
            "python": f'"{sys.executable}"',
        }
        return "[[board]]\n" + "".join(f"{key} = {value}\n" for key, value in {**lines, **keys}.items())

    def processes(self) -> list[str]:
        """What runs on the board, but for sshd's own."""
        return [line for line in board_processes(self.home) if "sshd" not in line]

    def left(self) -> set[str]:
        """What lies in the board's home and temporary folder."""
        return {str(path.relative_to(self.home)) for path in self.home.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def _sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = tmp_path_factory.mktemp("home")
    (home / "tmp").mkdir()
    folder = tmp_path_factory.mktemp("sshd")
    with running_sshd(folder, f"SetEnv HOME={home} TMPDIR={home}/tmp") as sshd:
        yield Home(sshd, home)
        for line in board_processes(home):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)


@pytest.fixture
def home(_sshd: Home) -> Home:
    """A real sshd on loopback. What an earlier test left on its board does not count for this one."""
    for line in _sshd.processes():
        os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    until(lambda: _sshd.processes() == [], "the board is empty")
    return _sshd


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project of a user, on real sessions."""
    return Project(pytester, pytester.path / "events")
