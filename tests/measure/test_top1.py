"""Top-1: right answers, ties, and labels that prove nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.measure import Top1, count_top1

LABELS = np.array([0, 1, 2])


def test_counted_by_hand() -> None:
    scores = np.array([[9, 1, 1], [5, 1, 2], [0, 1, 2]])
    assert count_top1(scores, LABELS) == Top1(2, 0, 3)
    assert count_top1(scores, LABELS).share == pytest.approx(2 / 3)


def test_a_tie_is_no_answer() -> None:
    """A constant output would otherwise be right about class 0."""
    assert count_top1(np.zeros((3, 3)), LABELS) == Top1(0, 3, 3)


@pytest.mark.parametrize(
    ("scores", "labels", "error", "words"),
    [
        (np.zeros((0, 3)), np.zeros(0, int), HarnessError, "nothing was compared"),
        (np.eye(3), np.zeros((3, 1), int), HarnessError, "nothing was compared"),
        (np.eye(3)[:2], LABELS, ConformanceFailure, "scores have shape"),
        (np.zeros(3), LABELS, ConformanceFailure, "scores have shape"),
        (np.eye(3), np.array([0, 1, 3]), HarnessError, "labels reach 0..3 in 3"),
        (np.eye(3), np.array([-1, 1, 2]), HarnessError, "labels reach -1"),
        (np.full((3, 3), np.nan), LABELS, ConformanceFailure, "finite"),
        (np.eye(3), np.zeros(3, int), Inconclusive, "one class"),
    ],
)
def test_data_that_yield_no_figure(
    scores: np.ndarray, labels: np.ndarray, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        count_top1(scores, labels)
