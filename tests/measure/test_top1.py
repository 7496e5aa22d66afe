"""Top-1: right answers, ties, and labels that prove nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.measure import Top1, count_top1, judge_top1

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


def scores_of(answers: np.ndarray) -> np.ndarray:
    return np.eye(10, dtype=np.float32)[answers]


def test_labels_of_other_samples_judge_nothing() -> None:
    """The reference is then right by chance, and a board that is wrong throughout would lose nothing."""
    answers = np.arange(60) % 10
    labels = np.roll(answers, 1)
    with pytest.raises(Inconclusive, match=r"right on 0 of 60 labels, and one class alone is 6 of them"):
        judge_top1(scores_of(answers), scores_of(answers), labels, 0.01, lambda *_: None)


def test_a_drop_that_a_constant_answer_would_keep_to_judges_nothing() -> None:
    """54 of 60 labels are class 0: of a reference that knows all, 10 % fewer are what a constant gets."""
    labels = np.where(np.arange(60) < 54, 0, 1)
    for drop, judged in ((0.05, True), (0.1, False)):
        if judged:
            assert judge_top1(scores_of(labels), scores_of(labels), labels, drop, lambda *_: None) == []
            assert judge_top1(scores_of(labels), scores_of(0 * labels), labels, drop, lambda *_: None)
        else:
            with pytest.raises(Inconclusive, match="an output that never changes would pass"):
                judge_top1(scores_of(labels), scores_of(labels), labels, drop, lambda *_: None)
