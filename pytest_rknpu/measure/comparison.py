"""Did a quantile of the latency change between two runs? With how much confidence, of how many comparisons?

Both runs have raw samples by process. Two ways lead to a bound of the change, and both have to agree: the
interval is the wider of the two, the p-value the larger, so that it holds where either does.

- *Blocks by process.* Runs of one process share what that process got (its memory pages, its place in the
  caches), so that whole processes are drawn, with replacement: a block bootstrap. Its standard error of the
  logarithm of the pooled quantile is taken with a t distribution (Welch), since five processes are few: times
  sqrt(k / (k - 1)), with k - 1 degrees of freedom for each side. A percentile of the bootstrap could not say
  1e-5, which many comparisons ask for, and with five processes it is too narrow.
- *Order statistics.* Where runs are independent, bounds of each side's quantile (``measure.quantiles``) are
  exact whatever the shape, tails included. B is slower where its lower bound is above A's upper one, each at
  half of alpha; the smallest alpha for which that is so is the p-value.

**Noise floor.** Boards differ from themselves: after a reboot memory lies elsewhere, and no sample of one run
knows of it. What is asked is therefore whether the change is *beyond the floor*: the hypothesis to reject is
that the ratio lies within 1 / (1 + floor) to 1 + floor. The default is what ``measure.stability`` lets
processes of one and the same run differ by.

**Many comparisons.** p-values are corrected by Holm's procedure: the chance of even one false alarm among
all comparisons of two runs is at most alpha, however they depend on each other (the quantiles of one model
do, and models of one board too). Benjamini and Hochberg's would bound the share of false alarms among the
alarms: of use where alarms are many and each is looked at, but here a single one turns a build red.
Its price: with n runs a p-value of p99 is not below 4 x 0.99^n, that is 1.7e-4 for 1000. Among many
hundred comparisons p99 needs more runs to raise an alarm at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.measure.quantiles import (
    DEFAULT_ALPHA,
    QUANTILES,
    Decision,
    bounds,
    sample_quantile,
    smallest_useful_count,
)
from pytest_rknpu.measure.stability import instabilities

Doubles = NDArray[np.float64]
Processes = Sequence[Doubles]
Direction = Literal["slower", "faster", "unchanged"]

NOISE_FLOOR = 0.01
"""Relative: a smaller change is none."""
RESAMPLES = 200
LEAST_PROCESSES = 2
_BOOTSTRAP_SEED = 20240


@dataclass(frozen=True)
class Change:
    """A quantile before and after, in the unit of the samples. ``lower`` and ``upper`` bound the relative
    change (0.03: 3 % slower), each at confidence 1 - alpha. p-values are those of a change beyond the floor,
    one-sided and not corrected.
    """

    quantile: float
    before: float
    after: float
    lower: float
    upper: float
    p_slower: float
    p_faster: float

    @property
    def relative(self) -> float:
        """After by before, minus 1."""
        return self.after / self.before - 1.0

    @property
    def p_value(self) -> float:
        """Of a change in either direction, not corrected."""
        return min(1.0, 2.0 * min(self.p_slower, self.p_faster))

    def direction(self, corrected: float, alpha: float) -> Direction:
        """What is shown at ``alpha``, by the corrected p-value."""
        if corrected > alpha:
            return "unchanged"
        return "slower" if self.p_slower < self.p_faster else "faster"


def unfit_to_compare(before: Processes, after: Processes) -> list[str]:
    """Why these samples cannot be compared; none: they can. Side and reason, in words.

    Raises ValueError for a sample that is no positive number.
    """
    found: list[str] = []
    for side, processes in (("A", before), ("B", after)):
        if len(processes) < LEAST_PROCESSES:
            found.append(f"{side}: one process does not tell how processes differ")
        elif min(samples.size for samples in processes) < LEAST_PROCESSES:
            found.append(f"{side}: a process with fewer than {LEAST_PROCESSES} runs")
        else:
            found += [f"{side}: {reason}" for reason in instabilities(processes, QUANTILES)]
    return found


def change_of(
    before: Processes,
    after: Processes,
    quantiles: Sequence[float] = QUANTILES,
    *,
    alpha: float = DEFAULT_ALPHA,
    floor: float = NOISE_FLOOR,
) -> tuple[Change, ...]:
    """The change of each quantile from ``before`` to ``after`` (one array of positive samples per process).

    The same samples give the same answer: the bootstrap has a fixed seed. Raises ValueError where a side has
    fewer than two processes.
    """
    if min(len(before), len(after)) < LEAST_PROCESSES:
        raise ValueError(f"a comparison needs {LEAST_PROCESSES} processes on each side")
    errors = [_standard_errors(processes, quantiles) for processes in (before, after)]
    sizes = (len(before), len(after))
    sides = (np.sort(np.concatenate(before)), np.sort(np.concatenate(after)))
    return tuple(
        _change(sides, quantile, (errors[0][place], errors[1][place]), sizes, alpha, math.log1p(floor))
        for place, quantile in enumerate(quantiles)
    )


def _change(
    sides: tuple[Doubles, Doubles],
    quantile: float,
    errors: tuple[float, float],
    sizes: tuple[int, int],
    alpha: float,
    floor: float,
) -> Change:
    """Both ways to a bound, joined. ``errors`` are of logarithms, ``floor`` is one."""
    from scipy.stats import t as student

    a, b = (sample_quantile(side, quantile) for side in sides)
    moved = math.log(b / a)
    error, freedom = _welch(errors, sizes)
    reach = error * float(student.isf(alpha, freedom))
    outer = [bounds(side, quantile, alpha / 2) for side in sides]
    return Change(
        quantile=quantile,
        before=a,
        after=b,
        lower=math.expm1(min(moved - reach, _log_ratio(outer[1].lower, outer[0].upper))),
        upper=math.expm1(max(moved + reach, _log_ratio(outer[1].upper, outer[0].lower))),
        p_slower=max(
            float(student.sf((moved - floor) / error, freedom)),
            _order_p(sides[0], sides[1], quantile, math.exp(floor)),
        ),
        p_faster=max(
            float(student.sf((-moved - floor) / error, freedom)),
            _order_p(sides[1], sides[0], quantile, math.exp(floor)),
        ),
    )


def _log_ratio(above: float, below: float) -> float:
    """Of bounds that may be infinite: where few samples allow none, nothing bounds the change."""
    if above <= 0 or math.isinf(below):
        return -math.inf
    if below <= 0 or math.isinf(above):
        return math.inf
    return math.log(above / below)


def _welch(errors: tuple[float, float], sizes: tuple[int, int]) -> tuple[float, float]:
    """Standard error of a difference, and its degrees of freedom (Welch and Satterthwaite)."""
    variances = [error**2 for error in errors]
    total = sum(variances)
    freedom = total**2 / sum(v**2 / (size - 1) for v, size in zip(variances, sizes, strict=True))
    return math.sqrt(total), freedom


_LEAST_ERROR = 1e-6
"""Of a logarithm: what does not vary at all (a coarse clock) still is not known any better."""


def _standard_errors(processes: Processes, quantiles: Sequence[float]) -> list[float]:
    """Of the logarithm of each pooled quantile, by drawing whole processes with replacement."""
    count = len(processes)
    samples = np.log(np.concatenate(processes))
    owners = np.repeat(np.arange(count), [one.size for one in processes])
    order = np.argsort(samples, kind="stable")
    random = np.random.default_rng(_BOOTSTRAP_SEED)
    drawn = random.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)  # how often each process
    below = np.cumsum(drawn[:, owners[order]], axis=1)
    errors = []
    for quantile in quantiles:
        rank = np.ceil(np.round(quantile * below[:, -1:], 9))
        values = samples[order][(below >= rank).argmax(axis=1)]
        errors.append(max(float(values.std()) * math.sqrt(count / (count - 1)), _LEAST_ERROR))
    return errors


def _order_p(low: Doubles, high: Doubles, quantile: float, factor: float) -> float:
    """Twice the smallest a with: the lower bound of ``high`` is above the upper one of ``low`` times factor.

    Both ascending; each bound at confidence 1 - a.
    """
    upper, _ = _rank_levels(low.size, quantile)
    _, lower = _rank_levels(high.size, quantile)
    first_above = np.searchsorted(high, low * factor, side="right")  # the rank, from 0, of the first above it
    reached = first_above < high.size
    if not reached.any():
        return 1.0
    levels = np.maximum(upper[reached], lower[first_above[reached]])
    return min(1.0, 2.0 * float(levels.min()))


@lru_cache(maxsize=256)
def _rank_levels(count: int, quantile: float) -> tuple[Doubles, Doubles]:
    """For each rank from 0: how likely that sample is below the quantile's upper bound, and above its lower.

    The r-th smallest lies below the quantile with probability P(Bin(n, p) >= r) at most, and above it with
    P(Bin(n, p) <= r - 1) at most (``measure.quantiles``).
    """
    from scipy.stats import binom

    ranks = np.arange(1, count + 1)
    return binom.sf(ranks - 1, count, quantile), binom.cdf(ranks - 1, count, quantile)


def least_runs(quantiles: Sequence[float], alpha: float) -> int:
    """How many runs each side needs so that every one of these changes has finite bounds."""
    return max(smallest_useful_count(quantile, alpha / 2) for quantile in quantiles)


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected by Holm (1979), in the order given: reject those at or below alpha, and the chance of any
    false rejection is at most alpha, whatever the dependence.
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [1.0] * len(p_values)
    highest = 0.0
    for done, place in enumerate(order):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - done)))
        corrected[place] = highest
    return corrected


def judge_slower(changes: Sequence[Change], at_most: float, alpha: float) -> Decision:
    """One verdict over the quantiles of one model, as ``measure.latency`` has it for budgets.

    Fail: one is slower by more than ``at_most`` (the floor that ``changes`` were made with), each at alpha /
    their number by Holm. Pass: all are shown not to be; for a false pass the one that is slower has to pass,
    so that alpha holds for each.
    """
    if min(holm([change.p_slower for change in changes])) <= alpha:
        return "fail"
    return "pass" if all(change.upper <= at_most for change in changes) else "inconclusive"
