"""The words for bytes that differ name offsets, cache lines and both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.session.differences import describe_difference, describe_mismatch
from pytest_rknpu.session.sensitivity import stale_lines


def test_difference_names_offset_line_and_bytes() -> None:
    expected = bytes(256)
    actual = bytes(130) + b"\x07" + bytes(125)
    text = describe_difference(expected, actual)
    assert "1 of 256 bytes differ, offsets 130, cache lines 2" in text
    assert "actual   0000070000000000 " in text


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_difference_is_empty_exactly_for_equal_bytes(a: bytes, b: bytes) -> None:
    assert (describe_difference(a, b) == "") == (a == b)


def test_mismatch_names_iteration_and_counts() -> None:
    first = {
        "iteration": 3,
        "differing": 9,
        "offsets": list(range(64, 73)),
        "lines": [1],
        "expected": bytes(64),
        "actual": bytes([1]) * 64,
    }
    text = describe_mismatch({"comparisons": 10, "mismatches": 2, "first": first})
    assert "2 of 10 comparisons differ; first in iteration 3: 9 bytes" in text
    assert "64, 65, 66, 67, 68, 69, 70, 71, ..." in text


def test_stale_lines_counts_only_lines_that_could_be_stale() -> None:
    old, new = bytes(192), bytes(64) + bytes([1]) * 128
    assert stale_lines(old, old, new) == 2
    assert stale_lines(new, old, new) == 0
    assert stale_lines(new[:128] + old[128:], old, new) == 1
