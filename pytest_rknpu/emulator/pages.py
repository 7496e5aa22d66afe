"""Memory that a program can map, share by descriptor and find again: a memfd or a foreign descriptor."""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt

PAGE_BYTES = mmap.PAGESIZE


class Pages:
    """``bytes`` is the memory as a flat uint8 array, ``address`` where it lies, ``fd`` its descriptor or -1.

    ``close`` is what gives the descriptor back (``os.close``; a fault may keep it).
    """

    def __init__(
        self, data: npt.NDArray[np.uint8], mapping: mmap.mmap | None, fd: int, close: Callable[[int], None]
    ) -> None:
        self.bytes = data
        self.address = int(data.ctypes.data)
        self.fd = fd
        self._mapping = mapping
        # Pages that nobody releases give their descriptor back when they are collected.
        self._finalizer = weakref.finalize(self, close, fd) if fd >= 0 else None

    def release(self) -> None:
        """Unmap and close. A view that somebody still holds keeps the mapping until it goes."""
        self.bytes = np.empty(0, np.uint8)
        # BufferError: an array over the mapping is alive somewhere; its end unmaps. The descriptor goes now.
        with suppress(BufferError):
            if self._mapping is not None:
                self._mapping.close()
        if self._finalizer is not None:
            self._finalizer()
            self.fd = -1


def rounded(size: int) -> int:
    """``size`` rounded up to whole pages, at least one."""
    return max(-(-size // PAGE_BYTES), 1) * PAGE_BYTES


def allocate(size: int, close: Callable[[int], None]) -> Pages:
    """Fresh zeroed memory of at least ``size`` bytes behind a descriptor of its own; OSError if there is
    none.
    """
    fd = os.memfd_create("rknpu-emulated", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, rounded(size))
        return _mapped(fd, rounded(size), close)
    except (OSError, ValueError):
        os.close(fd)
        raise


def private(size: int) -> Pages:
    """Fresh zeroed memory of at least ``size`` bytes that has no descriptor."""
    return Pages(np.zeros(rounded(size), np.uint8), None, -1, close=os.close)


def adopt(fd: int, close: Callable[[int], None]) -> Pages:
    """Map somebody else's descriptor (its own duplicate is kept); OSError or ValueError if it cannot be
    mapped.
    """
    size = os.fstat(fd).st_size
    whole = size // PAGE_BYTES * PAGE_BYTES
    if not whole:
        raise ValueError(f"{size} bytes are less than a page")
    duplicate = os.dup(fd)
    try:
        return _mapped(duplicate, whole, close)
    except (OSError, ValueError):
        os.close(duplicate)
        raise


def _mapped(fd: int, size: int, close: Callable[[int], None]) -> Pages:
    mapping = mmap.mmap(fd, size)
    return Pages(np.frombuffer(mapping, np.uint8), mapping, fd, close)


def identity(fd: int) -> tuple[int, int]:
    """What two descriptors of one memory have in common; OSError for a descriptor that is not open."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
