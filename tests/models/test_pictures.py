"""PNG files: read back by hand, filter bytes and checksums included."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.models.pictures import png


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_a_picture_is_read_back(height: int, width: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (3, height, width)).astype(np.uint8)
    content = png(pixels)
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, offset = {}, 8
    while offset < len(content):
        (length,) = struct.unpack_from(">I", content, offset)
        body = content[offset + 4 : offset + 8 + length]
        (checksum,) = struct.unpack_from(">I", content, offset + 8 + length)
        assert zlib.crc32(body) == checksum
        chunks[body[:4]] = body[4:]
        offset += length + 12
    assert struct.unpack(">IIBBBBB", chunks[b"IHDR"]) == (width, height, 8, 2, 0, 0, 0)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    assert np.array_equal(rows[:, 1:].reshape(height, width, 3).transpose(2, 0, 1), pixels)
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
