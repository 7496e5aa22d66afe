"""What the runtime writes to file descriptors 1 and 2, caught in an anonymous file.

A file and no pipe: nothing has to be drained while a program runs, a writer never blocks, and what a
process wrote before it died is there. The memory of what was read is given back, so that a flood of log lines
does not fill a small board.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import sys
import tempfile
import threading
from typing import Any

from .companion import Companion
from .log_extract import LogExtract

_BLOCK = 64 * 1024
_RELEASE = 2**20
_PUNCH_HOLE = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
_UNBUFFERED = 2  # _IONBF of glibc, musl and bionic


class LogFile:
    """An anonymous file that processes append to, read from where the last reading ended."""

    def __init__(self) -> None:
        self.descriptor = anonymous_file("rknpu-log")
        self._position = 0
        self._released = 0
        self._extract = LogExtract()
        self._lock = threading.Lock()

    def pump(self) -> None:
        """Move what was written since into the bounded extract, and give its memory back. Thread-safe."""
        with self._lock:
            self._pump()

    def _pump(self) -> None:
        while True:
            data = os.pread(self.descriptor, _BLOCK, self._position)
            if not data:
                break
            self._position += len(data)
            self._extract.feed(data)
        if self._position - self._released >= _RELEASE:
            _punch_hole(self.descriptor, self._position)
            self._released = self._position

    def take(self) -> str:
        """What was written since the last call, as text."""
        with self._lock:
            self._pump()
            extract, self._extract = self._extract, LogExtract()
        return extract.text()

    @property
    def position(self) -> int:
        """Up to where the file was read."""
        return self._position

    def close(self) -> None:
        """Give the file back."""
        os.close(self.descriptor)


class LogCapture:
    """Points this process's descriptors 1 and 2 at a ``LogFile`` from ``start`` to ``stop``."""

    def __init__(self) -> None:
        self._file: LogFile | None = None
        self._companion: Companion | None = None
        self._saved: list[int] = []

    def start(self) -> None:
        """Begin to capture; C's stdout loses its buffer, else a crash would take the last lines with it."""
        _flush()
        self._file = LogFile()
        self._saved = [os.dup(1), os.dup(2)]
        os.dup2(self._file.descriptor, 1)
        os.dup2(self._file.descriptor, 2)
        unbuffer_standard_output()

    def accompany(self) -> Companion | None:
        """Let a companion tell the last lines, on the former stderr, should this process die untimely.

        The interpreter too then says there what a fault of memory hit. To be called once, after ``start`` and
        before a library is opened: the companion is a fork. None where the board has no room for one.
        """
        assert self._file is not None
        faulthandler.enable(self._saved[1], all_threads=False)
        with contextlib.suppress(OSError):
            self._companion = Companion(self._file.descriptor, self._saved[1])
        return self._companion

    def pump(self) -> None:
        """Keep the unread part small; cheap when nothing was written."""
        if self._file is not None:
            self._file.pump()

    def take(self) -> str:
        """What was written since the last call."""
        if self._file is None:
            return ""
        _flush()
        text = self._file.take()
        if self._companion is not None:
            self._companion.told(self._file.position)
        return text

    def stop(self) -> None:
        """Give descriptors 1 and 2 back to where they pointed before."""
        if self._file is None:
            return
        _flush()
        if self._companion is not None:
            self._companion.end()
            faulthandler.disable()
            self._companion = None
        for number, saved in zip((1, 2), self._saved):
            os.dup2(saved, number)
            os.close(saved)
        self._file.close()
        self._file = None


def unbuffer_standard_output() -> None:
    """Take the buffer from C's ``stdout``: the runtime prints there, and a file makes it fully buffered."""
    # A C library without the symbol leaves the buffer: lines then come late, not wrong.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        library: Any = ctypes.CDLL(None)
        library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, _UNBUFFERED, 0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def anonymous_file(label: str) -> int:
    """A descriptor of a file without a name, gone when its last descriptor closes."""
    try:
        return os.memfd_create(label, os.MFD_CLOEXEC)
    except (OSError, AttributeError):  # kernels before 3.17, C libraries before glibc 2.27
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _punch_hole(descriptor: int, length: int) -> None:
    try:
        call: Any = ctypes.CDLL(None).fallocate64
    except (OSError, AttributeError):
        return
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    call(descriptor, _PUNCH_HOLE, 0, length)
