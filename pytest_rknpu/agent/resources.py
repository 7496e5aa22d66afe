"""What this process holds and what DMA memory the board has given out (MEM-08)."""

from __future__ import annotations

import os
import re

BUFINFO = "sys/kernel/debug/dma_buf/bufinfo"
_TOTAL = re.compile(r"^Total\s+\d+\s+objects,\s+(\d+)\s+bytes", re.MULTILINE)


def parse_bufinfo(text: str) -> int | None:
    """Bytes of all dma-bufs of the board, from the last line of ``bufinfo``; None without that line."""
    found = _TOTAL.findall(text)
    return int(found[-1]) if found else None


def dma_bytes(root: str = "/") -> int | None:
    """Bytes in dma-bufs, board-wide; None where debugfs cannot be read (it takes root)."""
    try:
        with open(os.path.join(root, BUFINFO), encoding="utf-8", errors="replace") as file:
            return parse_bufinfo(file.read())
    except OSError:
        return None


def descriptors() -> int:
    """Open file descriptors of this process, not counting the one that lists them."""
    return len(os.listdir("/proc/self/fd")) - 1


def mappings() -> int:
    """Memory mappings of this process."""
    with open("/proc/self/maps", "rb") as file:
        return sum(1 for _ in file)


def snapshot(root: str = "/") -> dict[str, int | None]:
    """``descriptors``, ``mappings`` and, of the board below ``root``, ``dma_bytes`` (None where unknown)."""
    return {"descriptors": descriptors(), "mappings": mappings(), "dma_bytes": dma_bytes(root)}
