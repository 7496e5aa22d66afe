"""A bounded extract of a log of any length: beginning, end, and the error lines of what is left out."""

from __future__ import annotations

from collections import deque

LIMIT = 256 * 1024
"""Bytes that an extract holds at most, its own notes apart."""

ERROR_MARK = b"E RKNN"
"""What the runtime's error lines begin with; VER-05 judges those, so they outlive the cut."""

_LONGEST_LINE = 8 * 1024


class LogExtract:
    """Takes bytes in any portions. A third of the limit each is for beginning, error lines and end."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._part = limit // 3
        self._head = bytearray()
        self._head_is_full = False
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._errors = bytearray()
        self._rest = b""
        self._left_out = 0
        self._errors_left_out = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line + b"\n")
        # A line without end is cut, lest it grow without bound.
        while len(rest) > _LONGEST_LINE:
            self._take(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._rest = rest

    def _take(self, line: bytes) -> None:
        if not self._head_is_full and len(self._head) + len(line) <= self._part:
            self._head += line
            return
        self._head_is_full = True
        self._tail.append(line)
        self._tail_size += len(line)
        while self._tail_size > self._part:
            oldest = self._tail.popleft()
            self._tail_size -= len(oldest)
            self._leave_out(oldest)

    def _leave_out(self, line: bytes) -> None:
        self._left_out += len(line)
        if ERROR_MARK not in line:
            return
        if len(self._errors) + len(line) <= self._part:
            self._errors += line
        else:
            self._errors_left_out += 1

    def text(self) -> str:
        """The extract as text; bytes that are no UTF-8 are replaced."""
        parts = [bytes(self._head)]
        if self._left_out:
            parts.append(b"[%d bytes of log are left out here; their error lines follow]\n" % self._left_out)
            parts.append(bytes(self._errors))
            if self._errors_left_out:
                parts.append(b"[and %d more error lines]\n" % self._errors_left_out)
            parts.append(b"[end of what is left out]\n")
        return b"".join([*parts, *self._tail, self._rest]).decode("utf-8", "replace")
