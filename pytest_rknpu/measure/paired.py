"""Two classifiers on the same labelled samples: what one loses against the other (SPARSE-05).

Only samples on which exactly one of them is right tell them apart. If both are equally good, each such sample
falls to either side like a fair coin: that is McNemar's test, here exact (binomial), not its chi-square
approximation, which needs more such samples than a good pair of models leaves.

That a difference is not significant does not say that it is small. So a pass needs the upper confidence bound
of the loss to lie within the declared margin, and a failure the lower one beyond it: that there is some loss
is not yet that it is too large. The bounds are exact in the conservative sense: the loss is
p_lost - p_gained; each share is bounded by Clopper and Pearson at half the error, and both bounds hold
together with at least the confidence asked for (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import HarnessError, Inconclusive
from pytest_rknpu.measure.oracle import Report

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Paired:
    """Of ``count`` samples the reference alone was right on ``lost``, the other alone on ``gained``."""

    both: int
    lost: int
    gained: int
    neither: int

    @property
    def count(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    @property
    def loss(self) -> float:
        """The drop of the share of right answers; negative where the other is better."""
        return (self.lost - self.gained) / self.count


def pair(reference: NDArray[Any], other: NDArray[Any]) -> Paired:
    """From which samples (N,) each was right on. HarnessError: none, or another number of them."""
    if reference.ndim != 1 or reference.shape != other.shape or reference.size == 0:
        raise HarnessError(f"nothing was compared: answers have shapes {reference.shape} and {other.shape}")
    first, second = reference.astype(np.bool_), other.astype(np.bool_)
    return Paired(
        int((first & second).sum()),
        int((first & ~second).sum()),
        int((~first & second).sum()),
        int((~first & ~second).sum()),
    )


def mcnemar(paired: Paired) -> float:
    """Exact two-sided p-value of "equally good"; 1 where no sample tells them apart."""
    from scipy.stats import binomtest

    discordant = paired.lost + paired.gained
    return float(binomtest(paired.lost, discordant, 0.5).pvalue) if discordant else 1.0


def loss_bound(paired: Paired, confidence: float = CONFIDENCE) -> float:
    """The loss that is not exceeded, at ``confidence``; a share of all samples, at most 1."""
    from scipy.stats import binomtest

    lost = binomtest(paired.lost, paired.count).proportion_ci(confidence, "exact").high
    gained = binomtest(paired.gained, paired.count).proportion_ci(confidence, "exact").low
    return float(lost - gained)


def loss_at_least(paired: Paired, confidence: float = CONFIDENCE) -> float:
    """The loss that is exceeded, at ``confidence``; a share of all samples, below 0 where none is shown."""
    other_way = Paired(paired.both, paired.gained, paired.lost, paired.neither)
    return -loss_bound(other_way, confidence)


def samples_for_margin(margin: float, confidence: float = CONFIDENCE) -> int:
    """The fewest samples with which a pair that agrees on all of them stays within ``margin``.

    ValueError: margin or confidence outside (0, 1).
    """
    if not 0 < margin < 1 or not 0 < confidence < 1:
        raise ValueError(f"margin and confidence lie between 0 and 1, not at {margin} and {confidence}")
    return math.ceil(math.log((1 - confidence) / 2) / math.log1p(-margin))


def judge_loss(paired: Paired, margin: float, report: Report, confidence: float = CONFIDENCE) -> list[str]:
    """What is wrong, in words; an empty list: the loss is within ``margin`` (a share of all samples).

    Inconclusive: there are too few samples to say so, one way or the other.
    """
    p, bound, least = mcnemar(paired), loss_bound(paired, confidence), loss_at_least(paired, confidence)
    report("labelled", float(paired.count), "samples")
    report("right before, wrong now", float(paired.lost), "samples")
    report("wrong before, right now", float(paired.gained), "samples")
    report("McNemar p", p, "")
    report(f"loss excluded at {confidence:.0%}", bound, "")
    report(f"loss shown at {confidence:.0%}", least, "")
    report("declared margin", margin, "")
    figures = (
        f"{paired.lost} of {paired.count} samples lost, {paired.gained} gained, exact McNemar p = {p:.3g}; "
        f"at {confidence:.0%} the loss is at most {bound:.2%}, and at least {least:.2%}"
    )
    if bound <= margin:
        return []
    if least > margin and p < 1 - confidence:
        return [f"{figures}; declared: at most {margin:.2%}"]
    raise Inconclusive(
        f"{figures}, which does not show the declared {margin:.2%} nor breaks it; without any loss "
        f"{samples_for_margin(margin, confidence)} samples would be enough"
    )
