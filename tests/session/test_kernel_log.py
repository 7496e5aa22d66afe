"""New complaints of the kernel, told from old ones that have the same words."""

from __future__ import annotations

import pytest

from pytest_rknpu.session.kernel_log import new_complaints

STARTED = "RKNPU fdab0000.npu: Initialized RKNPU driver: v0.9.8"
TIMEOUT = "RKNPU: job timeout, mask: 0x1"


def test_what_was_there_before_is_not_new() -> None:
    assert new_complaints([STARTED, TIMEOUT], [STARTED, TIMEOUT]) == []


def test_the_same_complaint_once_more_is_new() -> None:
    assert new_complaints([STARTED, TIMEOUT], [STARTED, TIMEOUT, TIMEOUT]) == [TIMEOUT]


def test_what_fell_out_of_the_window_is_no_complaint() -> None:
    assert new_complaints([TIMEOUT, STARTED], [STARTED]) == []


@pytest.mark.parametrize(
    "line",
    [
        "RKNPU: soft reset",
        "RKNPU: failed to submit!, irq status: 0x0",
        "fdab0000.npu: timed out waiting for the job",
        "Disabling IRQ #42",
    ],
)
def test_complaints_are_known_by_their_words(line: str) -> None:
    assert new_complaints([STARTED], [STARTED, line]) == [line]


def test_other_messages_are_no_complaints() -> None:
    assert new_complaints([], [STARTED, "fdab0000.npu: bin=0"]) == []
