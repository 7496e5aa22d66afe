"""Memory that a program can map, share by descriptor and find again: a memfd, or somebody else's descriptor."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

PAGE_BYTES = mmap.PAGESIZE


class Pages:
    """A shared mapping of a descriptor. ``bytes`` is the mapping as a flat uint8 array, ``address`` where it lies.

    ``close`` is what gives a descriptor back (``os.close``; a fault may keep it). `private` pages have no descriptor:
    ``fd`` is -1.
    """

    def __init__(self, mapping: mmap.mmap, fd: int, close: Callable[[int], None]) -> None:
        self._mapping = mapping
        self.fd = fd
        self._close = close
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mapping, np.uint8)
        self.address = int(self.bytes.ctypes.data)

    def release(self) -> None:
        """Unmap and close. A view that somebody still holds keeps the mapping until it goes."""
        self.bytes = np.empty(0, np.uint8)
        try:
            self._mapping.close()
        except BufferError:
            # An array over the mapping is alive somewhere; its end unmaps. The descriptor goes now.
            pass
        if self.fd >= 0:
            self._close(self.fd)
            self.fd = -1


def rounded(size: int) -> int:
    """``size`` rounded up to whole pages, at least one."""
    return max(-(-size // PAGE_BYTES), 1) * PAGE_BYTES


def allocate(size: int, close: Callable[[int], None]) -> Pages:
    """Fresh zeroed memory of at least ``size`` bytes behind a descriptor of its own; OSError if there is none."""
    fd = os.memfd_create("rknpu-emulated", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, rounded(size))
        return Pages(mmap.mmap(fd, rounded(size)), fd, close)
    except (OSError, ValueError):
        os.close(fd)
        raise


def private(size: int) -> Pages:
    """Fresh zeroed memory of at least ``size`` bytes that has no descriptor."""
    return Pages(mmap.mmap(-1, rounded(size)), -1, os.close)


def adopt(fd: int, close: Callable[[int], None]) -> Pages:
    """Map somebody else's descriptor (its own duplicate is kept); OSError or ValueError if it cannot be mapped."""
    size = os.fstat(fd).st_size
    whole = size // PAGE_BYTES * PAGE_BYTES
    duplicate = os.dup(fd)
    try:
        return Pages(mmap.mmap(duplicate, whole), duplicate, close)
    except (OSError, ValueError):
        os.close(duplicate)
        raise


def identity(fd: int) -> tuple[int, int]:
    """What two descriptors of one memory have in common; OSError for a descriptor that is not open."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
