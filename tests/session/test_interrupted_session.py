"""What interrupts a session: the timeout of a test, Ctrl-C, a host that is killed, a list without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from pytest_rknpu.errors import BoardError, BoardLost, HarnessError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, Program, open_session
from pytest_rknpu.session import board_session as module

HOST = """
import sys
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import Program, open_session

with open_session(Board(name="desk", soc="rk3588", runtime="emulator"), seed=1) as session:
    print(session.agent["pid"], flush=True)
    sys.stdin.readline()
    print(session.reset()["left_behind"], flush=True)
    endless = Program()
    with endless.repeat(2**32 - 1):
        endless.thrash(2**16)
    session.execute(endless, deadline_s=600)
"""


class Interrupted(Exception):
    """What a timer raises in the middle of a request."""


@contextmanager
def timer(seconds: float) -> Iterator[None]:
    """Raise `Interrupted` in this thread after so long, as pytest-timeout raises its failure."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def saving(name: str) -> Program:
    """A list that saves one value."""
    program = Program()
    program.timestamp(name)
    return program


def busy(seconds: float, save: str) -> Program:
    """A list that keeps the agent busy for so long, and then saves one value."""
    program = Program()
    with program.child("child", deadline_s=seconds), program.repeat(2**32 - 1):
        program.thrash(2**16)
    program.timestamp(save)
    return program


def test_a_reply_that_comes_too_late_is_nobodys(session: BoardSession) -> None:
    with timer(0.3), pytest.raises(Interrupted):
        session.execute(busy(1.5, "same name"))
    assert not session.alive
    with pytest.raises(BoardLost, match="ended earlier"):
        session.execute(saving("same name"), deadline_s=5)


def test_what_cannot_be_sent_is_named_and_the_board_is_as_before(session: BoardSession) -> None:
    with pytest.raises(HarnessError, match="board desk: the request 'probe' cannot be sent"):
        session.request({"request": "probe", "callback": print})
    assert session.alive
    assert set(session.execute(saving("then"))["values"]) == {"then"}


def test_a_list_that_takes_too_long_leaves_the_board_usable(session: BoardSession) -> None:
    program = Program()
    with program.repeat(2**32 - 1):
        program.thrash(4096)
    message = (
        r"board desk, command 0\.\d+\.\d: repeat: out of time after \d+ of 4294967295 iterations.*longer"
    )
    with pytest.raises(BoardError, match=message) as caught:
        session.execute(program, deadline_s=0.3)
    assert not isinstance(caught.value, BoardLost)
    assert set(session.execute(saving("then"))["values"]) == {"then"}


def test_a_hung_board_is_lost_and_its_agent_ended(
    session: BoardSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.1)
    pid = session.agent["pid"]
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(BoardLost, match=r"no answer to 'execute' within 0\.4 s"):
        session.execute(saving("then"), deadline_s=0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@contextmanager
def host(script: str = HOST) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process with a session, in a process group of its own; and the number of its agent."""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition comes true in time."""
    ends = time.monotonic() + seconds
    while not condition() and time.monotonic() < ends:
        os.sched_yield()
    return condition()


def test_a_killed_host_leaves_no_agent_at_work() -> None:
    with host() as (process, agent):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[]\n"
        assert not until(lambda: not runs(agent), 0.3)  # it is at work
        process.kill()
        assert until(lambda: not runs(agent), 3)


def test_ctrl_c_does_not_reach_the_agent() -> None:
    script = "import signal; signal.signal(signal.SIGINT, lambda *_: None)\n" + HOST  # a debugger, say
    with host(script) as (process, agent):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "[]\n"
        assert runs(agent)


def test_a_python_below_a_folder_with_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = tmp_path / "my environment"
    environment.symlink_to(sys.prefix)
    python = environment / Path(sys.executable).relative_to(sys.prefix)
    monkeypatch.setattr(sys, "executable", str(python))
    with open_session(Board(name="desk", soc="rk3588", runtime="emulator"), seed=1) as opened:
        assert opened.alive


def test_folders_of_killed_runs_are_cleared_away(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with host() as (process, _):
        (killed,) = tmp_path.iterdir()
        process.kill()
        process.wait()
    yesterday = time.time() - 86_400
    with open_session(board, seed=1):
        os.utime(killed, (yesterday, yesterday))
        (alive,) = set(tmp_path.iterdir()) - {killed}
        os.utime(alive, (yesterday, yesterday))
        with open_session(board, seed=1):
            left = set(tmp_path.iterdir())
            assert alive in left
            assert killed not in left
            assert len(left) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_without_room_is_named(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    monkeypatch.setattr("tempfile.tempdir", str(gone))
    with (
        pytest.raises(BoardError, match=rf"board desk: its folder below {gone} .*No such file.*set TMPDIR"),
        open_session(board, seed=1),
    ):
        pass


def test_the_disk_fills_up_while_the_board_is_built(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_rknpu.emulator.make_root", full)
    with pytest.raises(BoardError, match=r"desk.*No space left on device"), open_session(board, seed=1):
        pass


def test_threads_of_a_test_get_their_own_replies(session: BoardSession) -> None:
    wrong: list[tuple[str, list[str]]] = []

    def ask(thread: int) -> None:
        for number in range(50):
            name = f"{thread}-{number}"
            values = session.execute(saving(name))["values"]
            if set(values) != {name}:
                wrong.append((name, list(values)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
