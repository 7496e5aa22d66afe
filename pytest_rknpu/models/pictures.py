"""Arrays as picture files, which RKNN-Toolkit2 takes as calibration data, without an imaging library."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Bits a sample, colour type "truecolour", and the usual compression, filter and interlace (ISO 15948).
_FORM = (8, 2, 0, 0, 0)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of RGB ``pixels`` (3, H, W)."""
    _, height, width = pixels.shape
    rows = np.ascontiguousarray(pixels.transpose(1, 2, 0)).reshape(height, width * 3)
    # Each row starts with the number of its filter: none.
    scanlines = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, *_FORM)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(scanlines)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
