"""A small process beside the agent, for what an agent cannot do that is dead or frozen.

It tells what the runtime logged last. That lies in an anonymous file (see ``log_capture``), which would die
with the agent: killed by the kernel for want of memory, say, or by a fault in the runtime. The companion
holds that file too. It waits on a pipe whose other end only the agent holds. When the agent is gone without
having said so, it writes the end of what was not yet reported to the stderr that the agent was started with,
which the host reads, and ends.

And it ends an agent that has heard nothing from its host for too long: a link can go silent without an end
(the host lost its power, say), and the agent may be in no state to notice.

It is a fork that runs no more than this: a second interpreter would take a small board seconds to start.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import struct
import time

LAST_BYTES = 8 * 1024
"""How much of the log's end is told."""

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
# What agent and companion share. Each has a place of its own, since threads of the agent set them.
_FORM = struct.Struct("=d")
_TOLD, _HEARD, _SILENCE, _LEFT = range(0, 4 * _FORM.size, _FORM.size)


class Companion:
    """Starts the companion. ``log`` is the file, ``words_to`` the descriptor where it writes."""

    def __init__(self, log: int, words_to: int) -> None:
        self._shared = mmap.mmap(-1, 4 * _FORM.size)
        self.heard()
        reading, self._lifeline = os.pipe()
        agent = os.getpid()
        self._pid = os.fork()
        if self._pid:
            os.close(reading)
            return
        try:
            os.setsid()  # what ends the agent's session or group shall not end this
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            _close_all_but({log, words_to, reading})
            _await_end(reading, agent, self._shared)
            _tell(log, words_to, self._shared)
        finally:
            os._exit(0)

    def told(self, position: int) -> None:
        """The host has what was logged up to there."""
        self._set(_TOLD, position)

    def heard(self) -> None:
        """The host has sent something."""
        self._set(_HEARD, time.monotonic())

    def end_after(self, silence_s: float) -> None:
        """Kill the agent when it has heard nothing for so long."""
        self._set(_SILENCE, silence_s)
        os.write(self._lifeline, b".")  # it wakes up to see that

    def end(self) -> None:
        """The agent leaves in order: the companion has nothing to say, and ends."""
        self._set(_LEFT, 1)
        os.close(self._lifeline)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _set(self, place: int, value: float) -> None:
        _FORM.pack_into(self._shared, place, value)


def _get(shared: mmap.mmap, place: int) -> float:
    value: float = _FORM.unpack_from(shared, place)[0]
    return value


def _close_all_but(kept: set[int]) -> None:
    """Else the host would wait for the end of a stdout that is still open here."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _await_end(reading: int, agent: int, shared: mmap.mmap) -> None:
    """Return once the agent is gone, which is when the pipe ends: until then its number is its own."""
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    left: float | None = None
    while True:
        woken = poll.poll(None if left is None else max(left, 0.0) * 1000)
        if woken and not os.read(reading, 1):
            return
        silence_s = _get(shared, _SILENCE)
        left = _get(shared, _HEARD) + silence_s - time.monotonic() if silence_s else None
        if left is not None and left <= 0:
            os.kill(agent, signal.SIGKILL)
            left = 1.0  # one that hangs within the driver does not die yet


def _tell(log: int, words_to: int, shared: mmap.mmap) -> None:
    if _get(shared, _LEFT):
        return
    told, size = int(_get(shared, _TOLD)), os.fstat(log).st_size
    begin = max(told, size - LAST_BYTES)
    data = os.pread(log, max(0, size - begin), begin).replace(b"\0", b"")  # given back to the system: zeros
    if begin > told:
        data = data.partition(b"\n")[2]  # it begins in the middle of a line
    if data.strip():
        with contextlib.suppress(OSError):
            os.write(words_to, b"last lines of the runtime's log:\n" + data.rstrip() + b"\n")
