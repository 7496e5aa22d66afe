"""What is known of a board at the moment when it is lost: which command, which logs, which end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from recovery.conftest import npu_of, running, runs, until

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, Program, ZeroCopy, open_session
from pytest_rknpu.session import board_session as module

Open = Callable[..., BoardSession]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """``opened(fault)``: a session with an emulated board; short of patience."""
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.5)
    with ExitStack() as stack:

        def open_it(*faults: str) -> BoardSession:
            board = Board(name="desk", soc="rk3588", runtime="emulator", faults=faults)
            session = stack.enter_context(open_session(board, seed=1))
            assert isinstance(session, BoardSession)
            return session

        yield open_it


def lost(session: BoardSession, program: Program, deadline_s: float = 2.0) -> str:
    pid = session.agent["pid"]
    with pytest.raises(BoardLost) as caught:
        session.execute(program, deadline_s)
    assert not session.alive
    until(lambda: not runs(pid), "the agent is gone", 10)
    return str(caught.value)


def test_a_run_that_never_returns_is_named_with_the_logs(opened: Open) -> None:
    session = opened("run-hangs:after=10")
    message = lost(session, running(npu_of(session), 50))
    first, *rest = message.splitlines()
    assert "no answer to 'execute' within 2.5 s: the board answers, yet command " in first
    assert ".10.0 (run) does not return (hung NPU or driver)" in first
    assert "runtime log:" in rest
    assert any(line.startswith("  E RKNN") and "it never ends" in line for line in rest)
    assert rest[rest.index("kernel log:") + 1] == "  rknpu: emulated driver started"


def test_the_group_of_threads_that_hangs_is_named(opened: Open) -> None:
    session = opened("run-hangs:after=0")
    npu = npu_of(session)
    program = Program()
    with program.threads() as threads:
        for number in range(2):
            with threads.group():
                if number == 0:
                    program.timestamp("quick")
                else:
                    io = ZeroCopy(f"thread {number}", npu.model("probe_pointwise"))
                    io.open(program)
                    program.run(io.context)
    assert "yet command 0.1.5 (run) does not return" in lost(session, program)


def test_a_crash_within_the_runtime_is_told_with_stack_and_last_lines(opened: Open) -> None:
    session = opened("run-crashes:after=10")
    message = lost(session, running(npu_of(session), 50))
    assert "the agent's process ended during 'execute'" in message
    assert "Fatal Python error: Segmentation fault" in message
    assert "in repeat_step" in message
    assert message.index("last lines of the runtime's log:") < message.index(
        "about to touch what is not mapped"
    )


def test_a_frozen_agent_is_noticed_by_the_deadline(opened: Open) -> None:
    session = opened()
    os.kill(session.agent["pid"], signal.SIGSTOP)
    message = lost(session, Program(), 0.5)
    assert "no answer to 'execute' within 1 s, nor when its agent was asked what it is at" in message


def test_a_message_that_nobody_takes_is_noticed_by_the_deadline(opened: Open) -> None:
    """More than fits into a pipe: writing it would wait for ever."""
    session = opened()
    os.kill(session.agent["pid"], signal.SIGSTOP)
    with pytest.raises(BoardLost, match="'put_model' could not be sent by its deadline: nobody reads"):
        session.request({"request": "put_model", "sha256": "0" * 64, "data": bytes(10**6)}, 1)
    assert not session.alive


def test_ctrl_c_ends_a_message_that_nobody_takes(opened: Open) -> None:
    session = opened()
    os.kill(session.agent["pid"], signal.SIGSTOP)

    def ring(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            session.request({"request": "put_model", "sha256": "0" * 64, "data": bytes(10**6)}, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not session.alive


def test_an_answer_that_comes_late_is_called_so(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the deadline and the question what the agent is at."""
    session = opened()
    os.kill(session.agent["pid"], signal.SIGSTOP)
    monkeypatch.setattr(session._link, "_last_words", lambda: {"ok": True, "values": {}, "log": ""})
    assert "the answer came just after that" in lost(session, Program(), 0.5)


def test_what_a_killed_agent_had_logged_is_told_once(opened: Open) -> None:
    """Lines that came with a reply are not repeated."""
    session = opened("error-line-with-success")
    npu = npu_of(session)
    assert session.execute(running(npu, 1))["log"].count("REGTASK") == 1
    os.kill(session.agent["pid"], signal.SIGKILL)
    assert "REGTASK" not in lost(session, Program())


def test_an_agent_that_leaves_in_order_says_nothing(opened: Open, capfd: pytest.CaptureFixture[str]) -> None:
    session = opened()
    session.request({"request": "stop"})
    session.close()
    assert session._link._gateway.last_words() == ""  # type: ignore[attr-defined]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("frozen", [False, True])
def test_a_host_that_went_silent_is_not_waited_for(opened: Open, frozen: bool) -> None:
    session = opened()
    pid = session.agent["pid"]
    session._link.give_signs_of_life(2)
    library = {"kind": "python", "entry": "pytest_rknpu.emulator:open_library", "options": {"soc": "rk3588"}}
    start = {"request": "start", "library": {**library, "context_bits": 64}, "silence_s": 2}
    assert session.request(start)["ok"]
    time.sleep(3)
    assert runs(pid)  # signs of life alone keep it
    if frozen:  # it cannot hear them
        os.kill(pid, signal.SIGSTOP)
    else:  # there are none any more, while the link is open
        session._link._closed.set()  # type: ignore[attr-defined]
    until(lambda: not runs(pid), "the agent is ended", 10)
