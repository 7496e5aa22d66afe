"""Making an execnet gateway in bounded time, and saying what went wrong where none comes about.

This is what ``execnet.Group.makegateway`` does, in its steps: a process is started, Python on the board is
brought to answer, and execnet takes over. Between them lies all that execnet itself has no word for: a board
that never answers, a shell that greets on stdout, a Python that is not there or too old.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator

import execnet
from execnet import gateway_bootstrap
from execnet.gateway_base import ExecModel, Popen2IO

from pytest_rknpu.transport.diagnosis import explain
from pytest_rknpu.transport.prelude import READY
from pytest_rknpu.transport.way import NoConnection, Way

CONNECT_SECONDS = 60.0
_REAP_SECONDS = 5.0
# Words of stderr that are kept, and noise that a login shell may make before Python runs.
_KEPT_BYTES = 16 * 1024
_NOISE_BYTES = 256 * 1024


class ProcessIO(Popen2IO):
    """execnet's view of the process behind a `Way`, and the last words of its stderr."""

    def __init__(self, way: Way, execmodel: ExecModel) -> None:
        with _deaf_to_interrupts():
            self.popen = subprocess.Popen(
                way.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        super().__init__(self.popen.stdin, self.popen.stdout, execmodel=execmodel)
        self._words = b""
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.popen.stderr is not None
        with self.popen.stderr, contextlib.suppress(OSError, ValueError):
            while words := os.read(self.popen.stderr.fileno(), 8192):
                self._words = (self._words + words)[-_KEPT_BYTES:]

    def said(self) -> str:
        """The end of what the process wrote to stderr."""
        if self.popen.poll() is not None:
            self._listener.join(1)  # not for ever: a background process of its own may keep stderr open
        return self._words.decode("utf-8", "replace")

    def wait(self) -> int | None:
        """Wait for the end; its exit code."""
        return self.popen.wait()

    def ended(self) -> int | None:
        """The exit code, waited for a little; None where the process goes on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.popen.wait(_REAP_SECONDS)
        return None

    def kill(self) -> None:
        """End the process by force."""
        self.popen.kill()

    def discard(self) -> None:
        """Give everything up: process and pipes."""
        self.kill()
        self.ended()
        for close in (self.close_read, self.close_write):
            with contextlib.suppress(OSError):
                close()


def connect(group: execnet.Group, way: Way) -> tuple[execnet.Gateway, ProcessIO]:
    """Make the gateway that ``way`` leads to, a member of ``group``.

    Raises NoConnection; whatever was started is ended then.
    """
    spec = execnet.XSpec("popen")
    group.allocate_id(spec)
    spec.execmodel = group.remote_execmodel.backend
    try:
        io = ProcessIO(way, group.execmodel)
    except OSError as error:
        raise NoConnection(str(error)) from error
    try:
        gateway = _answering(io, way, spec)
    except BaseException:
        io.discard()
        raise
    gateway.spec = spec
    group._register(gateway)
    return gateway, io


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """What is started in the block never sees Ctrl-C, which a terminal sends to all processes of a run.

    Otherwise it would take the board away from a test that is still cleaning up, or from a debugger's prompt.
    A process inherits the signals that are blocked where it is started.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answering(io: ProcessIO, way: Way, spec: execnet.XSpec) -> execnet.Gateway:
    """The gateway, once the far Python answers."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        io.kill()

    limit = threading.Timer(CONNECT_SECONDS, give_up)
    limit.daemon = True
    limit.start()
    noise = bytearray()
    answered = False
    try:
        _await_ready(io, noise)
        answered = True
        gateway_bootstrap.bootstrap_exec(io, spec)
    except AssertionError:  # not the greeting of execnet's far half
        raise NoConnection(
            "something there writes to stdout after Python has started; look for background jobs in the "
            "start files of the login shell (.bashrc, .profile)"
        ) from None
    except (OSError, EOFError) as error:
        if late.is_set():
            raise NoConnection(f"no answer within {CONNECT_SECONDS:g} s") from error
        raise NoConnection(explain(way, io.ended(), _heard(io, noise), started=answered)) from error
    finally:
        limit.cancel()
    if io.popen.poll() is not None:  # execnet passes over an early end
        raise NoConnection(explain(way, io.ended(), io.said(), started=True))
    return execnet.Gateway(io, spec)


def _await_ready(io: ProcessIO, noise: bytearray) -> None:
    """Read up to and with `READY`; what came before goes to ``noise``."""
    while not noise.endswith(READY):
        if len(noise) > _NOISE_BYTES:
            raise NoConnection(
                f"more than {_NOISE_BYTES // 1024} KiB came on stdout before Python did; look at the start "
                "files of the login shell (.bashrc, .profile), and let them be silent without a terminal"
            )
        noise += io.read(1)
    del noise[-len(READY) :]


def _heard(io: ProcessIO, noise: bytearray) -> str:
    """All that was said: where a board's stderr is one stream with stdout, its words are in the noise."""
    return "\n".join(part for part in (noise.decode("utf-8", "replace").strip(), io.said().strip()) if part)
