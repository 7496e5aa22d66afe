"""The head of .rknn files: read where it is right, refused with a ModelError wherever it is not."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu import prebuilt
from pytest_rknpu.errors import ModelError
from pytest_rknpu.toolchain import RknnHeader, read_header
from pytest_rknpu.toolchain.rknn_file import RknnInput


def rknn_file(
    description: Any, *, version: int = 6, body: bytes = bytes(32), raw: bytes | None = None
) -> bytes:
    text = json.dumps(description).encode() if raw is None else raw
    head = b"RKNN".ljust(8, b"\0") + struct.pack("<QQ", version, len(body))
    return head.ljust(64, b"\0") + body + struct.pack("<Q", len(text)) + text


def tensor(number: int, name: str = "input", size: Any = (1, 3, 8, 8), kind: Any = "int8") -> dict[str, Any]:
    return {
        "tensor_id": number,
        "url": name,
        "size": list(size),
        "dtype": {"qnt_type": kind, "vx_type": kind},
    }


def link(number: int, to: int, side: str = "input") -> dict[str, Any]:
    return {"left": side, "left_tensor_id": number, "right": "norm_tensor", "right_tensor_id": to}


GOOD = {
    "target_platform": ["rk3588"],
    "version": "2.5.0",
    "nodes": [],
    "input_num": 2,
    "graph": [link(1, 7), link(0, 5), link(0, 6, "output")],
    "norm_tensor": [tensor(5, "a"), tensor(6, "y"), tensor(7, "b", (1, 5), "")],
}
INPUTS = (RknnInput("a", (1, 3, 8, 8), "int8"), RknnInput("b", (1, 5), None))


def test_a_right_file() -> None:
    assert read_header(rknn_file(GOOD)) == RknnHeader(6, ("rk3588",), "2.5.0", INPUTS)
    mini = rknn_file({**GOOD, "target_platform": ["RV1106", "rv1103"]}, version=0x1004, body=b"")
    assert read_header(mini) == RknnHeader(0x1004, ("rv1106", "rv1103"), "2.5.0", INPUTS)
    silent = {key: GOOD[key] for key in ("target_platform", "version")}
    assert read_header(rknn_file(silent)).inputs == ()
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
        (rknn_file({**GOOD, "input_num": 3}), "2 of 3 inputs are described"),
        (rknn_file({**GOOD, "graph": []}), "0 of 2 inputs are described"),
        (rknn_file({**GOOD, "graph": [link(0, 5), link(1, 9)]}), "does not describe its inputs: KeyError"),
        (rknn_file({**GOOD, "norm_tensor": 3}), "does not describe its inputs"),
        (rknn_file({**GOOD, "norm_tensor": [tensor(5), tensor(7, size=[0, 1])]}), "of shape"),
        (rknn_file({**GOOD, "norm_tensor": [tensor(5), tensor(7, size=["1"])]}), "of shape"),
        (rknn_file({**GOOD, "norm_tensor": [tensor(5), tensor(7, kind=8)]}), "of type 8"),
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_any_description_is_read_or_refused(data: st.DataObject) -> None:
    described: dict[str, Any] = json.loads(json.dumps(GOOD))
    for key in data.draw(st.lists(st.sampled_from(list(GOOD)), max_size=2)):
        described[key] = data.draw(JSON)
    place = data.draw(st.sampled_from(["graph", "norm_tensor"]))
    if isinstance(described[place], list) and described[place] and isinstance(described[place][0], dict):
        described[place][0][data.draw(st.sampled_from(list(described[place][0])))] = data.draw(JSON)
    with contextlib.suppress(ModelError):
        assert read_header(rknn_file(described)).target_platforms


@pytest.mark.parametrize("version", ["2.2.0", "2.3.0", "2.3.2", "2.5.0"])
@pytest.mark.parametrize("platform", ["rk3588", "rv1106"])
def test_shipped_files_say_what_they_take(platform: str, version: str) -> None:
    header = read_header(prebuilt.load("probe_pointwise", platform, version).content)
    assert header.inputs == (RknnInput("input", (1, 16, 16, 16), "int8"),)
