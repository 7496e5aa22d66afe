"""Is a quantile of a latency within its budget? Decided from counts alone, by exact binomial tails.

Let F be the distribution of the latency, q its p-quantile and B the budget for it. "Within budget" means F(B)
>= p, or: a run is above B with probability theta <= 1 - p. Of n independent runs, k are above B, and k is
binomial with n and theta. Nothing is assumed about the shape of F.

- *Pass* claims theta <= 1 - p. It would be wrong if theta > 1 - p, and the larger theta, the less likely are
  few exceedances: P(Bin(n, theta) <= k) < P(Bin(n, 1 - p) <= k). So passing only where the latter is at most
  alpha bounds the rate of false passes by alpha.
- *Fail* claims theta > 1 - p. It would be wrong if theta <= 1 - p, where P(Bin(n, theta) >= k) is at most
  P(Bin(n, 1 - p) >= k). Failing only where that is at most alpha bounds the rate of false fails by alpha.
- Everything between is inconclusive. Both cannot hold at once while alpha < 1/2, since the two tails add up
  to more than 1.

**n is fixed beforehand.** Who looks at the data and goes on until the verdict suits has as many chances as
looks. A decision that is taken at each of several looks uses alpha / looks each time (Bonferroni).

**The smallest useful n.** With no exceedance at all a pass still needs p^n <= alpha, and with nothing but
exceedances a fail needs (1 - p)^n <= alpha. Fewer runs cannot end in both verdicts, whatever they show: they
are refused. With t exceedances that shall still pass, the smallest n with P(Bin(n, 1 - p) <= t) <= alpha is
MLPerf's early-stopping rule (LoadGen): at alpha = 1 % and t = 1 that is 64 runs for p90, 662 for p99.

**Bounds.** X_(r), the r-th smallest of n runs, lies at or above q unless r or more runs lie below q, for
which the probability is at most P(Bin(n, p) >= r). The smallest r with that at most alpha gives an upper
bound of q at confidence 1 - alpha; likewise below. They say the same as the verdicts: pass iff the upper
bound is within the budget, fail iff the lower bound is above it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError

Doubles = NDArray[np.float64]
Decision = Literal["pass", "fail", "inconclusive"]

QUANTILES = (0.5, 0.95, 0.99)
"""Those that are written down, have budgets, and are compared."""
DEFAULT_ALPHA = 0.05
DEFAULT_SAMPLES = 1000


@dataclass(frozen=True)
class Rule:
    """How sure a verdict has to be: ``alpha`` bounds the rate of false passes, and that of false fails.

    ``looks`` is how many times the data are looked at while they come in; each look gets its part of alpha.
    """

    alpha: float = DEFAULT_ALPHA
    looks: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 0.5:
            raise ValueError(f"alpha lies between 0 and 0.5 (both excluded), not at {self.alpha}")
        if self.looks < 1:
            raise ValueError(f"data are looked at once or more often, not {self.looks} times")

    @property
    def per_look(self) -> float:
        """The alpha of one look."""
        return self.alpha / self.looks


@dataclass(frozen=True)
class Bounds:
    """Confidence bounds of a quantile, in the unit of the samples; infinite where too few allow none."""

    lower: float
    upper: float


def pass_tail(count: int, above: int, quantile: float) -> float:
    """P(Bin(count, 1 - quantile) <= above): how likely so few are where the budget is just broken."""
    from scipy.stats import binom

    _check(count, above, quantile)
    return float(binom.cdf(above, count, 1.0 - quantile))


def fail_tail(count: int, above: int, quantile: float) -> float:
    """P(Bin(count, 1 - quantile) >= above): how likely so many are where the budget is just kept."""
    from scipy.stats import binom

    _check(count, above, quantile)
    return float(binom.sf(above - 1, count, 1.0 - quantile))


def decide(
    count: int, above: int, quantile: float, alpha: float, fail_alpha: float | None = None
) -> Decision:
    """The verdict on ``above`` of ``count`` runs above the budget of ``quantile`` (0.99 for p99).

    ``fail_alpha`` (default alpha) is for those who decide several quantiles at once: see ``measure.latency``.
    Raises ConfigurationError where so few runs cannot decide, with the number needed; ValueError for no
    counts.
    """
    require_enough(count, quantile, alpha, fail_alpha)
    if pass_tail(count, above, quantile) <= alpha:
        return "pass"
    return "fail" if fail_tail(count, above, quantile) <= (fail_alpha or alpha) else "inconclusive"


@lru_cache(maxsize=1024)
def most_above_to_pass(count: int, quantile: float, alpha: float) -> int:
    """The most exceedances with which ``count`` runs pass; -1 where not even none would do."""
    from scipy.stats import binom

    found = int(binom.ppf(alpha, count, 1.0 - quantile))  # rounded somewhere inside; the tails settle it
    while found >= 0 and pass_tail(count, found, quantile) > alpha:
        found -= 1
    while found < count and pass_tail(count, found + 1, quantile) <= alpha:
        found += 1
    return found


@lru_cache(maxsize=1024)
def least_above_to_fail(count: int, quantile: float, alpha: float) -> int:
    """The fewest exceedances with which ``count`` runs fail; ``count`` + 1 where not even all would do."""
    from scipy.stats import binom

    found = int(binom.isf(alpha, count, 1.0 - quantile)) + 1
    while found <= count and fail_tail(count, found, quantile) > alpha:
        found += 1
    while found > 0 and fail_tail(count, found - 1, quantile) <= alpha:
        found -= 1
    return found


def smallest_to_pass(quantile: float, alpha: float, above: int = 0) -> int:
    """The fewest runs of which ``above`` may be above the budget and the verdict still be pass."""
    if above == 0:
        return _runs_until(quantile, alpha)
    low, high = above, 2 * (above + 1)
    while pass_tail(high, above, quantile) > alpha:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pass_tail(middle, above, quantile) <= alpha else (middle, high)
    return high


def smallest_useful_count(quantile: float, alpha: float, fail_alpha: float | None = None) -> int:
    """The fewest runs with which both pass and fail are possible."""
    _check(1, 0, quantile)
    return max(_runs_until(quantile, alpha), _runs_until(1.0 - quantile, fail_alpha or alpha))


def _runs_until(share: float, alpha: float) -> int:
    """The smallest n with share^n <= alpha."""
    runs = max(1, math.ceil(math.log(alpha) / math.log(share)))
    # The quotient is rounded; the neighbours settle it.
    while share**runs > alpha:
        runs += 1
    while runs > 1 and share ** (runs - 1) <= alpha:
        runs -= 1
    return runs


def require_enough(count: int, quantile: float, alpha: float, fail_alpha: float | None = None) -> None:
    """Refuse a number of runs that cannot decide. Raises ConfigurationError with the number needed."""
    needed = smallest_useful_count(quantile, alpha, fail_alpha)
    if count < needed:
        raise ConfigurationError(
            f"{count} samples cannot decide {quantile_name(quantile)} at alpha {alpha:g}, whatever they "
            f"show: at least {needed} are needed"
        )


def bounds(ordered: Sequence[float] | Doubles, quantile: float, alpha: float) -> Bounds:
    """Bounds of the quantile by order statistics of ``ordered`` (ascending), each at confidence 1 - alpha.

    With at most ``few`` exceedances of a budget it passes: so the sample that has ``few`` others above it is
    the smallest budget that would. With ``many`` it fails: so would every budget below the ``many``-th from
    above.
    """
    count = len(ordered)
    few, many = most_above_to_pass(count, quantile, alpha), least_above_to_fail(count, quantile, alpha)
    return Bounds(
        lower=float(ordered[count - many]) if many <= count else -math.inf,
        upper=float(ordered[count - few - 1]) if few >= 0 else math.inf,
    )


def sample_quantile(ordered: Sequence[float] | Doubles, quantile: float) -> float:
    """The smallest sample that at least a share ``quantile`` of all samples (ascending) does not exceed."""
    _check(len(ordered), 0, quantile)
    # 0.95 * 20 is 19.000000000000004 in floating point: that is rank 19.
    rank = math.ceil(round(quantile * len(ordered), 9))
    return float(ordered[max(rank, 1) - 1])


def chances(count: int, quantile: float, exceedance: float, alpha: float) -> tuple[float, float]:
    """(P(pass), P(fail)) of ``count`` independent runs that are above the budget with that probability."""
    from scipy.stats import binom

    few, many = most_above_to_pass(count, quantile, alpha), least_above_to_fail(count, quantile, alpha)
    return float(binom.cdf(few, count, exceedance)), float(binom.sf(many - 1, count, exceedance))


def quantile_name(quantile: float) -> str:
    """How the field writes a quantile: p50, p99, p99.9."""
    return f"p{100 * quantile:.6g}"


def _check(count: int, above: int, quantile: float) -> None:
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"a quantile lies between 0 and 1 (both excluded), not at {quantile}")
    if count < 1 or not 0 <= above <= count:
        raise ValueError(f"{above} of {count} samples is no count")
