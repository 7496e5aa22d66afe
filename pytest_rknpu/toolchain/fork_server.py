"""One process that has imported the toolkit and forks another for each job: an import for many jobs.

It is started with the first job and ends with this process. It serves one interpreter, environment and
installed toolkit; where one of these changes, another takes its place. Where it cannot be had the answer is
None, and the caller starts a process of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_rknpu.toolchain.child.fork_server import STARTED, STATUS
from pytest_rknpu.toolchain.side_by_side import RUNNING
from pytest_rknpu.toolchain.status import DISTRIBUTION

SERVER = Path(__file__).parent / "child" / "fork_server.py"
_SEND_S, _REAP_S, _END_S = 5.0, 10.0, 2.0
#: pytest changes it before each part of each test; jobs get its value at their time.
_PASSING = "PYTEST_CURRENT_TEST"
Identity = tuple[object, ...]


class ForkServer:
    """The server's process and the socket that takes jobs to it."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.users = 0
        self.retired = False
        self.unusable = False
        self._proven = False
        self._sending = threading.Lock()
        self._control, theirs = _pair()
        # What the import prints goes to the head of each job's log.
        with theirs, tempfile.TemporaryFile() as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-u", str(SERVER), str(theirs.fileno()), str(os.getpid())],
                cwd="/",
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )

    def run(self, job: Mapping[str, Any], deadline_s: float) -> int | None:
        """The exit status of the job, negative for a signal; None where the server failed it.

        subprocess.TimeoutExpired: the deadline has passed; nothing of the job runs any more, as after any
        other exception. ToolkitError: RUNNING was stopped.
        """
        end = time.monotonic() + deadline_s
        ours, theirs = _pair()
        with ours:
            with theirs, self._sending:
                try:
                    self._control.settimeout(_SEND_S)
                    socket.send_fds(self._control, [json.dumps(job).encode()], [theirs.fileno()])
                except OSError:
                    return None
            try:
                with RUNNING.one(partial(ours.shutdown, socket.SHUT_RDWR)):
                    return self._status(ours, end)
            except TimeoutError:
                self._abandon(ours)
                raise subprocess.TimeoutExpired(job["worker"], deadline_s) from None
            except BaseException:
                self._abandon(ours)
                raise

    def _status(self, connection: socket.socket, end: float) -> int | None:
        message = _receive(connection, end)
        if message == STARTED:
            self._proven = True
            message = _receive(connection, end)
        elif not (message or self._proven or self.retired or RUNNING.stopping):
            self.unusable = True
        return int(STATUS.unpack(message)[0]) if len(message) == STATUS.size else None

    def _abandon(self, connection: socket.socket) -> None:
        """The server kills and reaps the job; one that does not answer, as in an import that hangs, goes."""
        if self._proven:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
            end = time.monotonic() + _REAP_S
            with contextlib.suppress(TimeoutError):
                while _receive(connection, end) == STARTED:
                    pass
                return
        self.retired = True
        self.process.kill()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def end(self) -> None:
        """Only without jobs: they would end with it."""
        self._control.close()
        if self._proven:
            # It sees that, and ends the process that waits for the next job first.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)
        self.process.kill()
        self.process.wait()

    def forget(self) -> None:
        """In a fork of this process: the server is another's."""
        self._control.close()


class _Current:
    """The server of this process, if it has one; and of what identities none can be had."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.server: ForkServer | None = None
        self.unusable: set[Identity] = set()
        self.inherited: list[ForkServer] = []

    def borrow(self) -> ForkServer | None:
        identity = _identity()
        with self.lock:
            if identity in self.unusable:
                return None
            if self.server and (
                self.server.identity != identity or self.server.retired or self.server.ended()
            ):
                self.retire(self.server)
            if self.server is None:
                try:
                    self.server = ForkServer(identity)
                except OSError:
                    self.unusable.add(identity)
                    return None
            self.server.users += 1
            return self.server

    def give_back(self, server: ForkServer) -> None:
        with self.lock:
            server.users -= 1
            if server.unusable:
                self.unusable.add(server.identity)
            if server.unusable or server.retired or server.ended():
                self.retire(server)

    def retire(self, server: ForkServer) -> None:
        server.retired = True
        if server is self.server:
            self.server = None
        if server.users == 0:
            server.end()

    def finish(self) -> None:
        if self.server is not None:
            self.server.end()

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        if self.server is not None:
            self.server.forget()
            # Kept, since its process is not this one's child: collected, it would complain.
            self.inherited.append(self.server)
            self.server = None


_current = _Current()
atexit.register(_current.finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_current.after_fork)


def run_forked(worker: Path, request: Path, log: Path, temporary: Path, deadline_s: float) -> int | None:
    """Runs ``worker request`` in the request's folder, with its output in ``log`` and its own ``TMPDIR``.

    Returns the exit status as ``Popen.wait`` does; None where no server ran it to its end: it may have begun.
    subprocess.TimeoutExpired: it did not end within ``deadline_s``, and was killed with its process group.
    """
    server = _current.borrow()
    if server is None:
        return None
    job = {
        "worker": str(worker),
        "request": str(request),
        "folder": str(request.parent),
        "log": str(log),
        # Only what the server's differs in: the toolkit writes memory that it has not set into its models,
        # which must not be what is left of a message with the whole environment.
        "environment": {"TMPDIR": str(temporary), _PASSING: os.environ.get(_PASSING)},
    }
    try:
        return server.run(job, deadline_s)
    finally:
        _current.give_back(server)


def child_environment() -> dict[str, str]:
    """That of this process for its scripts, which find their neighbours on the import path whatever it says.

    Not what C has, which may hold more: readline adds LINES and COLUMNS there.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}


def _identity() -> Identity:
    """What a toolkit that was imported earlier must have in common with one imported now."""
    environment = frozenset((name, value) for name, value in os.environ.items() if name != _PASSING)
    try:
        distribution = metadata.distribution(DISTRIBUTION)
        package = Path(str(distribution.locate_file("rknn")))
        toolkit: tuple[object, ...] = (distribution.version, str(package), package.stat().st_mtime_ns)
    except (metadata.PackageNotFoundError, OSError):
        toolkit = ()
    return (sys.executable, environment, toolkit)


def _pair() -> tuple[socket.socket, socket.socket]:
    """Packets, so that each message arrives whole."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _receive(connection: socket.socket, end: float) -> bytes:
    """The next message, empty where the other side is gone. TimeoutError: none came."""
    connection.settimeout(max(end - time.monotonic(), 0.001))
    try:
        return connection.recv(64)
    except ConnectionError:
        return b""
