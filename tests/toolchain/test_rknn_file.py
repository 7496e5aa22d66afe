"""The head of .rknn files: read where it is right, refused with a ModelError wherever it is not."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ModelError
from pytest_rknpu.toolchain import RknnHeader, read_header


def rknn_file(
    description: Any, *, version: int = 6, body: bytes = bytes(32), raw: bytes | None = None
) -> bytes:
    text = json.dumps(description).encode() if raw is None else raw
    head = b"RKNN".ljust(8, b"\0") + struct.pack("<QQ", version, len(body))
    return head.ljust(64, b"\0") + body + struct.pack("<Q", len(text)) + text


GOOD = {"target_platform": ["rk3588"], "version": "2.5.0", "nodes": []}


def test_a_right_file() -> None:
    assert read_header(rknn_file(GOOD)) == RknnHeader(6, ("rk3588",), "2.5.0")
    mini = rknn_file({**GOOD, "target_platform": ["RV1106", "rv1103"]}, version=0x1004, body=b"")
    assert read_header(mini) == RknnHeader(0x1004, ("rv1106", "rv1103"), "2.5.0")
    assert read_header(rknn_file(GOOD) + b"more") == read_header(rknn_file(GOOD))


def test_every_truncation_is_refused() -> None:
    content = rknn_file(GOOD)
    for length in range(len(content)):
        words = "less than its header" if length < 64 else "truncated"
        with pytest.raises(ModelError, match=words):
            read_header(content[:length])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes"),
        (b"RKEM" + bytes(100), "starts with b'RKEM'"),
        (b"\x7fELF" + bytes(100), "instead of b'RKNN'"),
        (rknn_file({"version": "2.5.0"}), "no target_platform"),
        (rknn_file({**GOOD, "target_platform": []}), "no target_platform"),
        (rknn_file({**GOOD, "target_platform": "rk3588"}), "no target_platform"),
        (rknn_file({**GOOD, "target_platform": [1]}), "no target_platform"),
        (rknn_file({"target_platform": ["rk3588"]}), "no toolkit version"),
        (rknn_file([1, 2]), "no JSON object"),
        (rknn_file(None, raw=b"{"), "damaged"),
        (rknn_file(None, raw=b"\xff\xfe"), "damaged"),
        (rknn_file(None, raw=b"[" * 100_000), "damaged"),
        (rknn_file(None, raw=b"1" * 10_000), "damaged"),
    ],
)
def test_what_is_wrong_is_named(content: bytes, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_header(content)


@given(st.binary(max_size=400))
def test_random_bytes_are_refused(content: bytes) -> None:
    for candidate in (content, b"RKNN" + content):
        with pytest.raises(ModelError):
            read_header(candidate)


@given(st.data())
def test_changed_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    content = bytearray(rknn_file(GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        header = read_header(bytes(content))
    except ModelError:
        return
    assert header.target_platforms
