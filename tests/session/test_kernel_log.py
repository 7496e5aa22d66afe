"""New complaints of the kernel, told from old ones that have the same words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.session.kernel_log import new_complaints

STARTED = "RKNPU fdab0000.npu: Initialized RKNPU driver: v0.9.8"
TIMEOUT = "RKNPU: job timeout, mask: 0x1"
RESET = "RKNPU: soft reset, num: 6"


def log(*texts: str, first: int | None = None, level: int | None = 6) -> list[dict[str, Any]]:
    """Messages, numbered from ``first`` where the kernel numbers them."""
    return [
        {
            "sequence": None if first is None else first + at,
            "seconds": None,
            "level": level,
            "text": text,
        }
        for at, text in enumerate(texts)
    ]


@pytest.mark.parametrize("first", [None, 10])
def test_what_was_there_before_is_not_new(first: int | None) -> None:
    before = log(STARTED, TIMEOUT, first=first)
    assert new_complaints(before, before) == []


@pytest.mark.parametrize("first", [None, 10])
def test_the_same_complaint_once_more_is_new(first: int | None) -> None:
    before, after = log(STARTED, TIMEOUT, first=first), log(STARTED, TIMEOUT, TIMEOUT, first=first)
    assert new_complaints(before, after) == [TIMEOUT]


@pytest.mark.parametrize("first", [None, 10])
def test_what_fell_out_of_the_window_is_no_complaint(first: int | None) -> None:
    assert new_complaints(log(TIMEOUT, STARTED, first=first), log(STARTED, first=11 if first else None)) == []


def test_a_complaint_that_pushed_its_like_out_of_the_window_is_new() -> None:
    """By counting words alone it would not be: there is one, as before."""
    assert new_complaints(log(RESET, STARTED, first=1), log(STARTED, RESET, first=2)) == [RESET]


@pytest.mark.parametrize(
    "line",
    [
        RESET,
        "RKNPU: failed to submit!, irq status: 0x0",
        "RKNPU: failed to wait job, task counter: 0, flags: 0x5, ret = 0, elapsed time: 6226553us",
        "RKNPU: job commit failed",
        "fdab0000.npu: timed out waiting for the job",
        "Disabling IRQ #42",
        'irq 42: nobody cared (try booting with the "irqpoll" option)',
        "rk_iommu fdab9000.iommu: Page fault at 0x0 of type read",
    ],
)
def test_complaints_are_known_by_their_words(line: str) -> None:
    assert new_complaints(log(STARTED), log(STARTED, line)) == [line]


def test_what_the_kernel_calls_an_error_is_one_whatever_its_words() -> None:
    line = "RKNPU: \tcore 0 irq status: 0x0, raw status: 0x0, require mask: 0x300"
    assert new_complaints(log(STARTED, first=1), [*log(STARTED, first=1), *log(line, first=2, level=3)]) == [
        line
    ]


def test_other_messages_are_no_complaints() -> None:
    assert new_complaints([], log(STARTED, "fdab0000.npu: bin=0", first=1)) == []


@given(
    st.lists(st.sampled_from([STARTED, TIMEOUT, RESET]), max_size=8),
    st.lists(st.sampled_from([STARTED, TIMEOUT, RESET]), max_size=8),
    st.booleans(),
)
def test_all_new_complaints_are_found_and_no_old_one(old: list[str], new: list[str], numbered: bool) -> None:
    first = 1 if numbered else None
    found = new_complaints(log(*old, first=first), log(*old, *new, first=first))
    assert sorted(found) == sorted(line for line in new if line != STARTED)
