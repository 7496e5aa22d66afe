"""A small process that puts clocks back, whatever becomes of the agent that changed them.

The agent starts it before it changes anything, and tells it what to restore. It waits on a pipe whose other
end only the agent holds: when the agent asks, or is gone (killed, crashed, cut off: the kernel then closes
the pipe), it writes the old values back and ends. So it does on a signal, and when its deadline has passed.

Should the guardian be killed as well, its plan stays in a file: in ``run/``, which a restart of the board
empties as it resets the clocks, or where that cannot be written to, in a folder for temporary files. The next
agent finds it, sees that no guardian lives, and restores from it; so it does with what could not be put back.
A plan of an earlier start of the board, or of another user, is nothing to act on.

This text is also run by itself, so that it imports nothing of the agent. What it says is lines of JSON:
``{"recovered": [..]}`` at its start, ``{"armed": true}`` once it has the plan, ``{"restored": [..], "why":
..}`` at its end; or ``{"refused": reason}``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, Tuple

FILE = "rknpu-agent-clocks.json"
FOLDERS = ("run", "var/run", "tmp", "data/local/tmp")
"""Below the root: the first that can be written to gets the plan."""
BOOT_ID = "proc/sys/kernel/random/boot_id"

REFUSED = "the clocks of this board are pinned by another agent"
TRIES = 3
_BETWEEN_S = 0.05

Step = Tuple[str, str]
"""A file below the root, and what to write into it."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_CLOCKS = ("sys/class/devfreq/", "sys/devices/system/cpu/cpufreq/")
_GOVERNORS = ("/governor", "/scaling_governor")


def restore(root: str, steps: list[Step]) -> list[dict[str, Any]]:
    """Write all values, in order, whatever fails; ``{"path", "value", "error": None or why}`` for each.

    What fails is tried again: a governor may be busy for a moment. One that says that it was written and
    reads otherwise has failed too.
    """
    errors = [_put_back(root, step) for step in steps]
    for _ in range(TRIES - 1):
        if not any(errors):
            break
        time.sleep(_BETWEEN_S)
        errors = [error and _put_back(root, step) for error, step in zip(errors, steps)]
    return [
        {"path": "/" + path, "value": value, "error": error} for (path, value), error in zip(steps, errors)
    ]


def _put_back(root: str, step: Step) -> str | None:
    """Why it is not as it was; None where it is."""
    path, value = os.path.join(root, step[0]), step[1]
    try:
        write(path, value)
        found = _read(path) if path.endswith(_GOVERNORS) else value
    except OSError as failure:
        return failure.strerror or str(failure)
    return None if found == value else f"reads back {found!r}"


def write(path: str, value: str) -> None:
    """Write a file of sysfs: at once, and never creating one. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096).strip()


def not_restored(steps: list[Step], done: list[dict[str, Any]]) -> list[Step]:
    """Those of the steps that failed."""
    return [step for step, told in zip(steps, done) if told["error"] is not None]


class Hold:
    """A right over the clocks of one board: one living process has it, and loses it by dying.

    The agent's is to change them, the guardian's to put them back: where one of them was killed, nobody else
    may do the one or the other before the second is gone too.
    """

    def __init__(self, root: str, whose: str) -> None:
        board = hashlib.sha256(os.path.realpath(root).encode()).hexdigest()[:32]
        self._name = f"\0rknpu-clocks-{whose}-{board}".encode()
        self._socket: socket.socket | None = None

    def take(self) -> bool:
        """False where another process has it. A kernel without such sockets lets everybody have it."""
        with contextlib.suppress(OSError):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                self._socket.bind(self._name)
            except OSError as failure:
                self.release()
                return failure.errno != errno.EADDRINUSE
        return True

    def release(self) -> None:
        """Let another process have it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Plan:
    """The file with what is to be restored. Where none can be made, the guardian works without it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._hold = Hold(root, "guardian")
        self._path = ""
        self._descriptor: int | None = None

    def lock(self) -> bool:
        """Take it; False where another guardian has it, here or in a container that shares the folder."""
        if not self._hold.take():
            return False
        paths = [os.path.join(self._root, folder, FILE) for folder in FOLDERS]
        for self._path in sorted(paths, key=os.path.exists, reverse=True):  # what is left behind comes first
            try:
                self._descriptor = self._opened()
            except BlockingIOError:
                self._hold.release()
                return False
            if self._descriptor is not None:
                break
        return True

    def _opened(self) -> int | None:
        """The file, locked; None where it cannot be made, or is another user's. Raises BlockingIOError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            try:
                descriptor = os.open(self._path, flags, 0o600)
            except OSError:  # no such folder, read-only, or not ours
                return None
            try:
                if os.fstat(descriptor).st_uid != os.geteuid():
                    os.close(descriptor)
                    return None
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.stat(self._path).st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
            except FileNotFoundError:  # removed by the one who had it: again
                pass
            except BlockingIOError:
                os.close(descriptor)
                raise
            except OSError:  # a file system without locks
                os.close(descriptor)
                return None
            os.close(descriptor)

    def left_behind(self) -> list[Step]:
        """What a killed guardian did not get to restore, since the board was started."""
        if self._descriptor is None:
            return []
        try:
            told = json.loads(os.pread(self._descriptor, 2**20, 0).partition(b"\n")[0])
            steps = [(str(path), str(value)) for path, value in told["restore"]]
            return steps if told["boot"] == self._boot() and all(map(_is_a_clock, steps)) else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def keep(self, steps: list[Step]) -> None:
        """Write the plan down, before anything is changed.

        In one piece over the old one, whose rest may follow after the line: who is killed on the way leaves
        the one or the other.
        """
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            told = {"boot": self._boot(), "restore": steps}
            os.pwrite(self._descriptor, json.dumps(told).encode() + b"\n", 0)
            os.fsync(self._descriptor)

    def _boot(self) -> str | None:
        try:
            return _read(os.path.join(self._root, BOOT_ID))
        except OSError:
            return None

    def end(self, left: list[Step]) -> None:
        """Let go of it, and remove the file; where something is still to be restored, that is kept."""
        if self._descriptor is not None:
            if left:
                self.keep(left)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
            os.close(self._descriptor)
            self._descriptor = None
        self._hold.release()


def _is_a_clock(step: Step) -> bool:
    return step[0].startswith(_CLOCKS) and ".." not in step[0].split("/")


def recover(root: str) -> list[dict[str, Any]]:
    """Restore what a guardian that was killed left changed.

    [] where there is nothing, or where it or its agent is alive.
    """
    if not any(os.path.exists(os.path.join(root, folder, FILE)) for folder in FOLDERS):
        return []
    agent, plan = Hold(root, "agent"), Plan(root)
    if not agent.take():
        return []
    done: list[dict[str, Any]] = []
    if plan.lock():
        steps = plan.left_behind()
        done = restore(root, steps)
        plan.end(not_restored(steps, done))
    agent.release()
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
        say(refused=REFUSED)
        return
    left = plan.left_behind()
    done = restore(root, left)
    say(recovered=done)
    steps = owed = not_restored(left, done)
    ends = time.monotonic() + deadline_s
    lines = Lines(reading, wake)
    line = lines.next(deadline_s)
    while line and "restore" in json.loads(line):
        wanted = [(path, value) for path, value in json.loads(line)["restore"]]
        # What the agent found there is no state to go back to where an older one is still owed.
        steps = owed + [step for step in wanted if step[0] not in dict(owed)]
        plan.keep(steps)
        say(armed=True)
        line = lines.next(ends - time.monotonic())
    done = restore(root, steps)
    plan.end(not_restored(steps, done))
    reasons = {None: "the agent ended without a word", b"": "the deadline passed, or a signal came"}
    say(restored=done, why=reasons.get(line, "the agent asked for it"))


if __name__ == "__guardian__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
