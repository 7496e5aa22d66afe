"""A program at a terminal of its own, and what somebody in front of it would see: pyte draws the screen."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pyte: Any = pytest.importorskip("pyte", reason="pip install pyte")


class Seen:
    """The screen of a running program. ``raw`` is all that it has written."""

    def __init__(self, terminal: int, program: subprocess.Popen[bytes], columns: int, rows: int) -> None:
        self.raw = b""
        self._terminal = terminal
        self._program = program
        self._screen = pyte.HistoryScreen(columns, rows, history=5000)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        """The screen's lines, without blanks behind them and empty ones below."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    @property
    def transcript(self) -> list[str]:
        """What went off the screen at its top, and the screen."""
        above = [
            "".join(line[column].data for column in range(self._screen.columns)).rstrip()
            for line in self._screen.history.top
        ]
        return [*above, *self.lines]

    def wait_for(self, condition: Callable[[list[str]], bool], what: str, deadline_s: float = 60.0) -> None:
        """Read until the screen looks so. Fails with ``what`` and the screen if it never does."""
        ends = time.monotonic() + deadline_s
        while not condition(self.lines):
            goes_on = self._read(0.05) and time.monotonic() < ends
            assert goes_on, "\n".join([f"never seen: {what}", *self.lines])

    def type(self, text: str) -> None:
        """What somebody types."""
        os.write(self._terminal, text.encode())

    def ended(self, deadline_s: float = 60.0) -> int:
        """Read on to the program's end; its exit code."""
        ends = time.monotonic() + deadline_s
        while self._read(0.05):
            assert time.monotonic() < ends, "\n".join(["the program does not end", *self.lines])
        return self._program.wait(timeout=10)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        if not ready:
            return self._program.poll() is None
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # nobody has the other end open any more
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)


@contextmanager
def at_a_terminal(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    columns: int = 100,
    rows: int = 24,
) -> Iterator[Seen]:
    """Run the program there; it is killed at the end of the block."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    given = {name: value for name, value in os.environ.items() if name not in _OF_THIS_TERMINAL}
    given |= {"TERM": "xterm-256color", **(environment or {})}
    program = subprocess.Popen(
        command, cwd=folder, env=given, stdin=its, stdout=its, stderr=its, preexec_fn=_own_terminal
    )
    os.close(its)
    try:
        yield Seen(ours, program, columns, rows)
    finally:
        program.kill()
        program.wait()
        with contextlib.suppress(OSError):
            os.close(ours)


_OF_THIS_TERMINAL = ("CI", "BUILD_NUMBER", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS")


def _own_terminal() -> None:
    """Ctrl-C reaches those whose terminal it is."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
