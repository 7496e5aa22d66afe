"""Top-1 on labelled data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive


@dataclass(frozen=True)
class Top1:
    """Of ``count`` samples, ``correct`` are as labelled; ``tied`` had no single highest score: wrong."""

    correct: int
    tied: int
    count: int

    @property
    def share(self) -> float:
        return self.correct / self.count


def count_top1(scores: NDArray[Any], labels: NDArray[Any]) -> Top1:
    """Judges scores (N, classes) against labels (N,), class numbers from 0. Raises as ``right_answers``."""
    right = right_answers(scores, labels)
    tied = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return Top1(int(right.sum()), int(tied.sum()), int(labels.size))


def right_answers(scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the samples (N,) have their single highest score (N, classes) where they are labelled.

    A tie is no answer: taking the first of equal scores would let a constant output be right about class 0.
    HarnessError: no sample, or labels that do not fit. ConformanceFailure: scores of another shape or not
    finite. Inconclusive: all labels are one class, which an output that never changes would get right.
    """
    if labels.ndim != 1 or labels.size == 0:
        raise HarnessError(f"nothing was compared: labels have shape {labels.shape}")
    if scores.ndim != 2 or scores.shape[0] != labels.size:
        raise ConformanceFailure(f"scores have shape {scores.shape}, there are {labels.size} labels")
    if labels.min() < 0 or labels.max() >= scores.shape[1]:
        raise HarnessError(
            f"labels reach {int(labels.min())}..{int(labels.max())} in {scores.shape[1]} classes"
        )
    if not np.isfinite(scores).all():
        raise ConformanceFailure("scores are not all finite")
    if np.unique(labels).size == 1:
        raise Inconclusive("mistrusted: all labels are one class, which a constant output would get right")
    highest = scores.max(axis=1, keepdims=True)
    tied = (scores == highest).sum(axis=1) > 1
    right: NDArray[np.bool_] = (scores.argmax(axis=1) == labels) & ~tied
    return right
