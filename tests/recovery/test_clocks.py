"""Clocks that were pinned are as before on every way out, with a real sshd between the run and the board."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import pytest
from loopback_sshd import needs_sshd
from plugin.project import PYTEST, Project, wait_until
from recovery.conftest import Home, npu_of, runs, until

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.session import BoardSession, Program, open_session
from pytest_rknpu.session import board_session as module

pytestmark = needs_sshd

NPU = "root/sys/class/devfreq/fdab0000.npu/governor"
BEFORE, PINNED = "rknpu_ondemand", "userspace"
KEYS = {"latency_model": "wandering", "pin": True}


def governor(folder: Path) -> IO[str]:
    """The governor's file of the emulated board whose folder lies there; open, so that it can be read when
    gone.
    """
    (file,) = folder.glob(f"*/{NPU}")
    return file.open()


def says(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kill_agent(agent: int) -> None:
    os.kill(agent, signal.SIGKILL)


def kill_sshd_session(agent: int) -> None:
    os.kill(parent_of(agent), signal.SIGKILL)


def freeze_and_kill_agent(agent: int) -> None:
    os.kill(agent, signal.SIGSTOP)
    os.kill(agent, signal.SIGKILL)


Pinned = tuple[BoardSession, IO[str], ExitStack]


@pytest.fixture
def pinned(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pinned]:
    """A session whose clocks are pinned, the governor's file, and a stack for more."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ExitStack() as stack:
        session = stack.enter_context(open_session(home.board(**KEYS), seed=1))
        file = stack.enter_context(governor(tmp_path))
        assert says(file) == BEFORE
        assert isinstance(session, BoardSession)
        assert all(clock["pinned"] for clock in session.pin_clocks())
        assert says(file) == PINNED
        yield session, file, stack


@pytest.mark.parametrize("end", [kill_agent, kill_sshd_session, freeze_and_kill_agent])
def test_an_end_by_force(pinned: Pinned, home: Home, end: Callable[[int], None]) -> None:
    session, file, _ = pinned
    end(session.agent["pid"])
    until(lambda: says(file) == BEFORE, "the clocks are put back")
    until(lambda: home.processes() == [], "nothing is left on the board")


def test_a_frozen_agent_is_ended_by_the_next_session(
    pinned: Pinned, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.5)
    session, file, stack = pinned
    os.kill(session.agent["pid"], signal.SIGSTOP)
    with pytest.raises(BoardLost):
        session.execute(Program(), 0.5)
    assert says(file) == PINNED
    stack.enter_context(open_session(home.board(**KEYS), seed=1, lost=session))
    until(lambda: says(file) == BEFORE, "the clocks are put back")


def test_an_agent_that_cannot_be_ended_is_called_stuck_and_its_clocks_put_back(
    pinned: Pinned, home: Home, tmp_path: Path
) -> None:
    """One that hangs within the driver does not die; played by one that this user may not kill, so to say."""
    session, file, _ = pinned
    script = (
        "import json, os, sys\n"
        "from pytest_rknpu.agent import predecessor\n"
        "predecessor.END_S = 0.2\n"
        "kill = os.kill\n"
        f"os.kill = lambda pid, number: None if pid == {session.agent['pid']} else kill(pid, number)\n"
        "print(json.dumps(predecessor.end_predecessor(json.loads(sys.argv[1]))))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, json.dumps(session.identity)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout)["fate"] == "stuck"
    until(lambda: says(file) == BEFORE, "the clocks are put back")
    assert runs(session.agent["pid"])
    npu_of(session).finish()


TESTS = """
import os, threading, time
from pathlib import Path
from pytest_rknpu.session import Program
from pytest_rknpu.session.latency import pinned_clocks

def test_it(npu):
    with pinned_clocks(npu):
        program = Program()
        with program.child("child", deadline_s=100), program.repeat(2**32 - 1):
            program.thrash(4096)
        threading.Timer(0.3, Path("there").touch).start()
        npu.execute(program, 60)
"""


@pytest.mark.parametrize("way", ["kill -9", "Ctrl-C", "Ctrl-C twice"])
def test_the_end_of_a_run(project: Project, home: Home, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = project.pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    project.boards(home.table(latency_model='"wandering"', pin="true"))
    project.tests(TESTS)
    quiet = subprocess.DEVNULL
    run = subprocess.Popen(
        [*PYTEST, "-p", "no:cacheprovider"], stdout=quiet, stderr=quiet, start_new_session=True
    )
    try:
        wait_until((project.pytester.path / "there").exists, "the clocks are pinned", 120)
        with governor(temporary) as file:
            assert says(file) == PINNED
            if way == "kill -9":
                run.kill()
            else:
                os.killpg(run.pid, signal.SIGINT)
            if way == "Ctrl-C twice":
                os.killpg(run.pid, signal.SIGINT)
            run.wait(60)
            until(lambda: says(file) == BEFORE, "the clocks are put back")
        until(lambda: home.processes() == [], "nothing is left on the board")
    finally:
        run.kill()
        run.wait()
