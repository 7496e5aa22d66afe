"""What a message has of bytes, as a dump that people can read."""

from __future__ import annotations

import pytest

from pytest_rknpu.report.attachments import Attachment, attachments_of
from pytest_rknpu.session.differences import describe_difference, describe_mismatch


def test_bytes_that_differ_are_marked() -> None:
    expected = bytes(range(64))
    actual = expected[:5] + b"\xff\xff" + expected[7:31] + b"\x00" + expected[32:]
    (found,) = attachments_of(describe_difference(expected, actual), [])
    assert found.name == "differing bytes"
    assert found.text.splitlines() == [
        "3 of 64 bytes differ, offsets 5, 6, 31, cache lines 0",
        "",
        "0000  expected  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f",
        "      actual    00 01 02 03 04 ff ff 07 08 09 0a 0b 0c 0d 0e 0f",
        "                               ^^ ^^",
        "0010  expected  10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f",
        "      actual    10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 00",
        "                                                             ^^",
        "0020  expected  20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f",
        "      actual    20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f",
        "0030  expected  30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f",
        "      actual    30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f",
    ]


def test_what_the_board_compared_is_read_too() -> None:
    first = {
        "iteration": 3,
        "differing": 1,
        "offsets": [0],
        "lines": [0],
        "expected": b"\x01",
        "actual": b"\x02",
    }
    message = describe_mismatch({"mismatches": 1, "comparisons": 9, "first": first})
    text = f"before\n{message}\n\nother\n  expected 00 01\n  actual   00\nafter"
    first_dump, second = attachments_of(text, [])
    assert "0000  expected  01\n      actual    02\n                ^^" in first_dump.text
    assert second.name == "differing bytes, 2"
    assert "      actual    00\n                   ^^" in second.text


@pytest.mark.parametrize(
    "message",
    ["", "expected 3 stale lines\nactual 4", "why\nexpected dead\nactual no", "x\nexpected 0\nactual 1"],
)
def test_words_are_no_bytes(message: str) -> None:
    assert attachments_of(message, []) == []


def test_the_log_of_the_runtime_in_one_piece() -> None:
    sections = [
        ("Captured runtime log call", "E RKNN: one\n"),
        ("Captured stdout call", "not this"),
        ("Captured runtime log call", "E RKNN: two\n"),
    ]
    assert attachments_of("", sections) == [Attachment("runtime log", "E RKNN: one\nE RKNN: two\n")]
