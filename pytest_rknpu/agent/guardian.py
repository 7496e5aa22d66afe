"""A small process that puts clocks back, whatever becomes of the agent that changed them.

The agent starts it before it changes anything, and tells it what to restore. It waits on a pipe whose other
end only the agent holds: when the agent asks, or is gone (killed, crashed, cut off: the kernel then closes
the pipe), it writes the old values back and ends. So it does on a signal, and when its deadline has passed.

Should the guardian be killed as well, a file stays in ``run/`` (which a restart of the board empties, as it
resets the clocks): the next agent finds it, sees by its lock that no guardian lives, and restores from it.

This text is also run by itself, so that it imports nothing of the agent. What it says is lines of JSON:
``{"recovered": [..]}`` at its start, ``{"armed": true}`` once it has the plan, ``{"restored": [..], "why":
..}`` at its end; or ``{"refused": reason}``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any, Tuple

FILE = "run/rknpu-agent-clocks.json"
"""Below the root: the plan of a living guardian, locked by it, or of one that was killed."""

Step = Tuple[str, str]
"""A file below the root, and what to write into it."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def restore(root: str, steps: list[Step]) -> list[dict[str, Any]]:
    """Write all values, in order, whatever fails; ``{"path", "value", "error": None or why}`` for each."""
    done = []
    for path, value in steps:
        error = None
        try:
            write(os.path.join(root, path), value)
        except OSError as failure:
            error = failure.strerror or str(failure)
        done.append({"path": "/" + path, "value": value, "error": error})
    return done


def write(path: str, value: str) -> None:
    """Write a file of sysfs: at once, and never creating one. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


class Plan:
    """The file with what is to be restored. Where it cannot be made, the guardian works without it."""

    def __init__(self, root: str) -> None:
        self._path = os.path.join(root, FILE)
        self._descriptor: int | None = None

    def lock(self) -> bool:
        """Take the file; False where another guardian holds it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            try:
                descriptor = os.open(self._path, flags, 0o600)
            except OSError:  # no such folder, read-only, or not ours
                return True
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                current = os.stat(self._path)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:  # removed by the one who had it
                os.close(descriptor)
                continue
            if current.st_ino == os.fstat(descriptor).st_ino:
                self._descriptor = descriptor
                return True
            os.close(descriptor)

    def left_behind(self) -> list[Step]:
        """What a killed guardian did not get to restore."""
        if self._descriptor is None:
            return []
        try:
            text = os.pread(self._descriptor, 2**20, 0).decode()
            return [(str(path), str(value)) for path, value in json.loads(text)["restore"]]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def keep(self, steps: list[Step]) -> None:
        """Write the plan down, before anything is changed."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps({"restore": steps}).encode(), 0)
            os.fsync(self._descriptor)

    def clear(self) -> None:
        """All is restored: remove the file, and let go of it."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._descriptor)
        self._descriptor = None


def recover(root: str) -> list[dict[str, Any]]:
    """Restore what a guardian that was killed left changed; [] where there is nothing, or one is alive."""
    if not os.path.exists(os.path.join(root, FILE)):
        return []
    plan = Plan(root)
    if not plan.lock():
        return []
    done = restore(root, plan.left_behind())
    plan.clear()
    return done


class Lines:
    """Whole lines from a pipe. ``wake`` is a second descriptor that ends the waiting."""

    def __init__(self, descriptor: int, wake: int | None = None) -> None:
        self._descriptor = descriptor
        self._waiting: list[bytes] = []
        self._rest = b""
        self._poll = select.poll()
        for number in (descriptor, wake):
            if number is not None:
                self._poll.register(number, select.POLLIN)

    def next(self, seconds: float) -> bytes | None:
        """The next line; b"" where there was none in time or something woke us; None at the end."""
        ends = time.monotonic() + seconds
        while not self._waiting:
            ready = self._poll.poll(max(0.0, ends - time.monotonic()) * 1000)
            if self._descriptor not in [number for number, _ in ready]:
                return b""
            data = os.read(self._descriptor, 65536)
            if not data:
                return None
            *whole, self._rest = (self._rest + data).split(b"\n")
            self._waiting += whole
        return self._waiting.pop(0)


def main(reading: int, writing: int, root: str, deadline_s: float) -> None:
    """Guard: see the module's text."""
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)  # the descriptor tells
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the agent may be gone when we answer

    def say(**message: Any) -> None:
        with contextlib.suppress(OSError):
            os.write(writing, json.dumps(message).encode() + b"\n")

    plan = Plan(root)
    if not plan.lock():
        say(refused="the clocks of this board are pinned by another agent")
        return
    say(recovered=restore(root, plan.left_behind()))
    steps: list[Step] = []
    ends = time.monotonic() + deadline_s
    lines = Lines(reading, wake)
    line = lines.next(deadline_s)
    while line and "restore" in json.loads(line):
        steps = [(path, value) for path, value in json.loads(line)["restore"]]
        plan.keep(steps)
        say(armed=True)
        line = lines.next(ends - time.monotonic())
    done = restore(root, steps)
    plan.clear()
    reasons = {None: "the agent ended without a word", b"": "the deadline passed, or a signal came"}
    say(restored=done, why=reasons.get(line, "the agent asked for it"))


if __name__ == "__guardian__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
