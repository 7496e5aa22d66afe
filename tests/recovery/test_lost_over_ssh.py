"""A board behind a real sshd is lost in every way there is, and had again: nothing of the old session is left
there.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from loopback_sshd import free_port, needs_sshd
from recovery.conftest import Home, npu_of, running, runs, until

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.session import (
    BoardSession,
    Program,
    fitness_of,
    found_afterwards,
    open_session,
    require_fit,
)
from pytest_rknpu.session import board_session as module

pytestmark = needs_sshd


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.5)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(home: Home, stack: ExitStack, lost: BoardSession | None = None, **keys: object) -> BoardSession:
    session = stack.enter_context(open_session(home.board(**keys), seed=1, lost=lost))
    assert isinstance(session, BoardSession)
    return session


def loss(session: BoardSession, program: Program | None = None, deadline_s: float = 2.0) -> str:
    with pytest.raises(BoardLost) as caught:
        session.execute(program or Program(), deadline_s)
    return str(caught.value)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_frozen_agent_is_ended_by_the_next_which_reads_its_log(home: Home, stack: ExitStack) -> None:
    before = opened(home, stack, faults=("error-line-with-success",))
    fitness = fitness_of(before)
    npu_of(before).execute(running(npu_of(before), 1))
    frozen = before.agent["pid"]
    os.kill(frozen, signal.SIGSTOP)
    assert "the link is dead, or the agent frozen" in loss(before)
    before.close()
    assert runs(frozen)  # the end of its link says nothing to it
    after = opened(home, stack, before)
    assert not runs(frozen)
    told = found_afterwards(before, after)
    assert "\nafterwards: its agent was still there (stopped" in told
    assert "REGTASK" in told.partition("runtime log")[2]
    assert require_fit(after, fitness) == []


def test_a_hung_run_ends_with_its_agent(home: Home, stack: ExitStack) -> None:
    before = opened(home, stack, faults=("run-hangs:after=10",))
    pid = before.agent["pid"]
    assert "(run) does not return" in loss(before, running(npu_of(before), 50))
    until(lambda: not runs(pid), "the agent has ended")
    before.close()
    until(lambda: home.processes() == [], "nothing is left on the board")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_an_agent_that_dies_in_a_run(home: Home, stack: ExitStack, number: signal.Signals) -> None:
    session = opened(home, stack, faults=("run-hangs:after=10",))
    program, pid = running(npu_of(session), 50), session.agent["pid"]
    threading.Timer(0.5, os.kill, (pid, number)).start()
    message = loss(session, program, 60)
    assert "the agent's process ended during 'execute'" in message
    assert "it never ends" in message.partition("last lines of the runtime's log")[2]
    assert ("Segmentation fault" in message) == (number is signal.SIGSEGV)
    session.close()
    until(lambda: home.processes() == [], "nothing is left on the board")


def test_the_sshd_of_a_session_dies_in_a_run(home: Home, stack: ExitStack) -> None:
    session = opened(home, stack, faults=("run-hangs:after=10",))
    program, pid = running(npu_of(session), 50), session.agent["pid"]
    threading.Timer(0.5, os.kill, (parent_of(pid), signal.SIGKILL)).start()
    message = loss(session, program, 60)
    assert "the agent's process ended during 'execute'" in message
    assert "closed" in message.partition("stderr of agent and link")[2]
    until(lambda: not runs(pid), "the agent has ended", 10)
    session.close()
    until(lambda: home.processes() == [], "nothing is left on the board")


def test_an_agent_of_another_process_is_not_ended(home: Home, stack: ExitStack) -> None:
    """Its number alone proves nothing: numbers come again."""
    before = opened(home, stack)
    innocent = opened(home, stack)
    assert before.identity is not None
    before.identity = {**before.identity, "pid": innocent.agent["pid"]}
    after = opened(home, stack, before)
    assert after.predecessor is not None
    assert after.predecessor["fate"] == "gone"
    innocent.reset()


class Proxy:
    """A way to sshd that can go silent without an end, as when a cable is pulled."""

    def __init__(self, port: int) -> None:
        self.port = free_port()
        self.silent = False
        self._target = port
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._pairs.append((near, far))
            threading.Thread(target=self._forward, args=(near, far), daemon=True).start()

    def _forward(self, near: socket.socket, far: socket.socket) -> None:
        silent_now = False
        while not silent_now:
            ready, _, _ = select.select([near, far], [], [], 0.05)
            silent_now = self.silent
            for side in ready if not silent_now else ():
                data = side.recv(65536)
                (far if side is near else near).sendall(data)
                if not data:
                    near.close()
                    far.close()
                    return

    def close(self) -> None:
        self._server.close()
        for pair in self._pairs:
            for side in pair:
                side.close()


@pytest.fixture
def proxy(home: Home) -> Iterator[Proxy]:
    proxy = Proxy(home.sshd.port)
    yield proxy
    proxy.close()


def through(proxy: Proxy, home: Home, folder: Path) -> dict[str, object]:
    """The keys of a board whose sshd is reached through the proxy."""
    config, known = folder / "ssh_config", folder / "known_hosts"
    host_key = home.sshd.known_hosts.read_text().partition(" ")[2]
    known.write_text(f"[127.0.0.1]:{proxy.port} {host_key}")
    text = home.sshd.config.read_text().replace(f"Port {home.sshd.port}", f"Port {proxy.port}")
    config.write_text(text.replace(str(home.sshd.known_hosts), str(known)))
    return {"ssh_config": str(config)}


def test_a_link_that_goes_silent(home: Home, stack: ExitStack, proxy: Proxy, tmp_path: Path) -> None:
    before = opened(home, stack, **through(proxy, home, tmp_path))
    pid = before.agent["pid"]
    proxy.silent = True
    assert "no answer to 'execute' within 2.5 s, nor when its agent was asked" in loss(before)
    before.close()
    assert runs(pid)  # nobody told the board
    after = opened(home, stack, before)  # by a way that works
    until(lambda: not runs(pid), "the silent session's agent was ended", 10)
    assert "its agent was still there (asleep" in found_afterwards(before, after)


def test_a_link_that_goes_silent_while_much_is_sent(
    home: Home, stack: ExitStack, proxy: Proxy, tmp_path: Path
) -> None:
    session = opened(home, stack, **through(proxy, home, tmp_path))
    proxy.silent = True
    with pytest.raises(BoardLost, match=r"could not be sent by its deadline|the agent's process ended"):
        session.request({"request": "put_model", "sha256": "0" * 64, "data": os.urandom(2**25)}, 3)
    session.close()
