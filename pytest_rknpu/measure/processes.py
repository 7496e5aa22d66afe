"""Do the processes agree on which side of a budget a quantile lies?

Runs of one process share what that process got (its memory pages, its place in the caches, the slow swing of
a temperature), so that a thousand runs of five processes may be worth no more than five. A binomial tail does
not know of it: where processes differ by a fifth of the spread of single runs, which nobody sees in a plot,
it passes or fails one in five boards that are exactly at their budget.

So each process has one vote, the share of its runs that are above the budget, and a t test asks whether the
mean of the votes lies on one side of what is allowed. It holds whatever makes runs of one process alike, and
for independent runs it asks for little more than the binomial does.

Shares in a tail are skewed: few processes have most of the slow runs, and five processes that happen to have
none of them look alike too. A t test then passes too easily (and fails too seldom), so that a pass in the
tail takes a quarter of alpha: simulated, that brings the rate of false ones near alpha again (the rates are
in docs/latency.md). What comes once in twenty processes is not among five, and nothing sees it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

TAIL = 0.9
TAIL_PART = 0.25
"""Of alpha, for passes of this and higher quantiles."""


@dataclass(frozen=True)
class Votes:
    """How many runs of each process are above a budget, of how many."""

    above: tuple[int, ...]
    runs: tuple[int, ...]

    def tails(self, allowed: float) -> tuple[float, float]:
        """How likely a mean share so low, and one so high, is where ``allowed`` is the true one.

        Of a single process nobody knows how processes differ: (0, 0), since then nothing is to be objected.
        """
        from scipy.stats import t as student

        count = len(self.above)
        if count < 2:
            return 0.0, 0.0
        shares = np.array(self.above) / np.array(self.runs)
        if shares.min() == shares.max():
            return float(shares[0] >= allowed), float(shares[0] <= allowed)
        off = float(shares.mean()) - allowed
        error = float(shares.std(ddof=1)) / math.sqrt(count)
        return float(student.cdf(off / error, count - 1)), float(student.sf(off / error, count - 1))


def votes(processes: Sequence[Doubles], budget: float) -> Votes:
    """Count the runs above ``budget``, by process."""
    return Votes(
        tuple(int((samples > budget).sum()) for samples in processes),
        tuple(samples.size for samples in processes),
    )


def alpha_to_pass(quantile: float, alpha: float) -> float:
    """How unlikely the votes have to be for a pass of ``quantile`` at ``alpha``."""
    return alpha * TAIL_PART if quantile >= TAIL else alpha
