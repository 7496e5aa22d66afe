"""Making an execnet gateway in bounded time, and saying what went wrong where none comes about.

This is what ``execnet.Group.makegateway`` does, in its two steps: the process is started, then the far
Python is brought to answer. Between them lies all that execnet itself has no word for: a board that never
answers, a shell that greets on stdout, a Python that is not there.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import execnet
from execnet import gateway_bootstrap, gateway_io

CONNECT_SECONDS = 60.0
_REAP_SECONDS = 5.0
_SSH_FAILED = 255
_NOT_FOUND = 127


class NoConnection(Exception):
    """No gateway came about; the message says why, as far as one can tell from here."""


def connect(group: execnet.Group, text: str) -> execnet.Gateway:
    """Make the gateway that the execnet specification ``text`` describes, a member of ``group``.

    Raises NoConnection; whatever was started is ended then.
    """
    spec = execnet.XSpec(text)
    group.allocate_id(spec)
    spec.execmodel = group.remote_execmodel.backend
    try:
        with _deaf_to_interrupts():
            io = gateway_io.create_io(spec, execmodel=group.execmodel)
    except OSError as error:
        raise NoConnection(str(error)) from error
    try:
        gateway = _answering(io, spec)
    except BaseException:
        _end(io)
        raise
    gateway.spec = spec
    group._register(gateway)
    return gateway


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


def _answering(io: Any, spec: execnet.XSpec) -> execnet.Gateway:
    """The gateway, once the far Python answers."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        io.kill()

    limit = threading.Timer(CONNECT_SECONDS, give_up)
    limit.daemon = True
    limit.start()
    try:
        gateway = gateway_bootstrap.bootstrap(io, spec)
    except AssertionError:  # what came first was not execnet's own greeting
        raise NoConnection(
            "something there writes to stdout before Python does; look for echo, printf and the like in the "
            "start files of the login shell (.bashrc, .profile), and let them be silent without a terminal"
        ) from None
    except (OSError, EOFError, execnet.HostNotFound) as error:
        raise NoConnection(_ending(io, late, spec)) from error
    finally:
        limit.cancel()
    if io.popen.poll() is not None:  # execnet passes over most ways to end
        raise NoConnection(_ending(io, late, spec))
    return gateway


def _ending(io: Any, late: threading.Event, spec: execnet.XSpec) -> str:
    if late.is_set():
        return f"no answer within {CONNECT_SECONDS:g} s"
    with contextlib.suppress(subprocess.TimeoutExpired):
        io.popen.wait(_REAP_SECONDS)
    code = io.popen.returncode
    if code == _SSH_FAILED and spec.ssh:
        return "ssh failed; its own words are on stderr"
    if code == _NOT_FOUND and spec.ssh:
        return f"exit code {code}: there is no {spec.python}; set python in boards.toml"
    return f"it ended with exit code {code} before Python answered"


def _end(io: Any) -> None:
    io.kill()
    for step in (lambda: io.popen.wait(_REAP_SECONDS), io.close_read, io.close_write):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            step()
