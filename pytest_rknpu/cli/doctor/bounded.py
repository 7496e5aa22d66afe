"""Questions to programs and to the network that end in time, whatever they meet."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_under_way: dict[object, Callable[[], None]] = {}
"""How to end each question that a thread waits on."""


def give_up() -> None:
    """End the questions of all threads now; they have no answer."""
    for end in list(_under_way.values()):
        end()


@contextlib.contextmanager
def _ended_by(end: Callable[[], None]) -> Iterator[None]:
    key = object()
    _under_way[key] = end
    try:
        yield
    finally:
        del _under_way[key]


@dataclass(frozen=True)
class Answer:
    """``code`` is None where the program did not end in time; ``said`` is its stdout, then its stderr."""

    code: int | None
    said: str


def ask(command: Sequence[str], seconds: float, folder: str | None = None) -> Answer:
    """Run a program that needs no input, in ``folder``; it and all it started are ended when time is over.

    OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )
    code: int | None = None
    try:
        with _ended_by(lambda: _end(process)):
            out, err = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        _end(process)
        out, err = process.communicate()
    except BaseException:
        _end(process)
        process.wait()
        raise
    return Answer(code, (out + b"\n" + err).decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def why_not_reached(host: str, port: int, seconds: float) -> str | None:
    """Why nothing at this address takes a connection; None where something does.

    The name is looked up in a thread that nobody waits for: the resolver has no limit of its own.
    """
    found: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=seconds).close()
        except TimeoutError:
            found.put(f"no answer within {seconds:g} s")
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be encoded
            found.put(getattr(error, "strerror", None) or str(error))
        else:
            found.put(None)

    threading.Thread(target=connect, daemon=True).start()
    try:
        with _ended_by(lambda: found.put("given up")):
            return found.get(timeout=seconds + 1)
    except queue.Empty:
        return f"no answer within {seconds:g} s"
