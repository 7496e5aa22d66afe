"""May these samples be judged at all? Reasons why not: they are not independent draws from one distribution.

A binomial tail is exact for independent runs of one and the same thing. Each check below looks for one way in
which a board breaks that, and has two conditions where it can: the effect is no accident (a test at level
``LEVEL``) and it is large enough to matter. The levels are small, so that sound samples are seldom refused;
what they let through is too weak to move the rates of false verdicts much
(tests/latency/test_latency_simulation.py, docs/latency.md).

- *Autocorrelation* at lag 1, of the ranks within each process: ranks, since one outlier would hide what all
  the others do. With correlation r the number of exceedances varies more than a binomial (at the median by a
  factor of about (1 + a) / (1 - a), a = 2 asin(r) / pi, if correlation fades from run to run), so that
  verdicts come too easily. For n independent samples r has standard deviation 1 / sqrt(n).
- *Clusters in the tail*: runs above the sample's own quantile follow each other more often than chance has
  it. A board that is slow for ten runs out of a thousand has hardly any correlation of ranks, and no p99. K
  of n runs placed at random have K (K - 1) / n neighbouring pairs on average, and their number is about
  Poisson.
- *Drift*: the medians of the first and the last quarters of the processes differ (Mann-Whitney).
- *Processes differ*: their medians (Kruskal-Wallis), or how many of their runs are in the tail (chi-square).
- *Two modes*: see ``measure.modes``.
- *Outliers*: more than a few runs that are far off, on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.measure.modes import two_modes
from pytest_rknpu.measure.quantiles import QUANTILES, quantile_name, sample_quantile

Doubles = NDArray[np.float64]
Processes = Sequence[Doubles]

LEVEL = 1e-3
"""Of each check that is a test."""
AUTOCORRELATION = 0.1
"""At most, of ranks; for fewer than 900 samples, three standard deviations of what chance gives."""
DRIFT = 0.01
"""At most, of medians, relative."""
SPREAD = 0.01
"""At most, between the processes' medians, relative."""
OUTLIER_FACTOR = 2.0
"""An outlier is off the median by that factor at least ..."""
OUTLIER_SPREADS = 6.0
"""... and by that many standard deviations (of the logarithm, by the quartiles)."""
OUTLIER_SHARE = 0.005
"""At most, of all samples, unless a test asks for less; one sample is always granted."""
_FEWEST_TO_DRIFT = 5  # samples in a quarter


def instabilities(
    processes: Processes, quantiles: Sequence[float] = QUANTILES, *, outlier_share: float = OUTLIER_SHARE
) -> list[str]:
    """Why samples (one array per process, in the order of the runs) cannot be judged; none: they can.

    ``quantiles`` are those to be judged, ``outlier_share`` what share of the runs may be outliers: 1.0 for a
    sign test, for which a run is on one side or the other, and that is all. Raises ValueError where a process
    has no sample, or one that is no positive number.
    """
    for samples in processes:
        if samples.size == 0 or not np.isfinite(samples).all() or samples.min() <= 0:
            raise ValueError("each process has samples, all of them positive numbers")
    checks = (
        _autocorrelated(processes),
        _clustered(processes, quantiles),
        _drifting(processes),
        _differing(processes, quantiles),
        _two_modes(processes),
        _outliers(processes, outlier_share),
    )
    return [reason for check in checks for reason in check]


def autocorrelation(processes: Processes) -> float:
    """Lag-1 autocorrelation of the ranks within each process, pooled; 0 where nothing varies.

    Neighbours of a shuffled process correlate by -1 / n on average, since ranks add up to 0 around their
    mean. Of many short processes that would be taken for a dependence, so that it is added.
    """
    from scipy.stats import rankdata

    product = square = 0.0
    for samples in processes:
        centred = rankdata(samples) - (samples.size + 1) / 2
        spread = float(centred @ centred)
        product += float(centred[:-1] @ centred[1:]) + spread / samples.size
        square += spread
    return product / square if square else 0.0


def _autocorrelated(processes: Processes) -> Iterator[str]:
    count = sum(samples.size for samples in processes)
    limit = max(AUTOCORRELATION, 3 / math.sqrt(count))
    found = autocorrelation(processes)
    if abs(found) > limit:
        yield f"successive runs depend on each other: lag-1 autocorrelation {found:.2f}, at most {limit:.2f}"


def tail_clusters(processes: Processes, quantile: float) -> tuple[int, float]:
    """(pairs of neighbouring runs above the sample's quantile, pairs expected of independent runs)."""
    threshold = sample_quantile(np.sort(np.concatenate(processes)), quantile)
    pairs, expected = 0, 0.0
    for samples in processes:
        above = samples > threshold
        pairs += int((above[:-1] & above[1:]).sum())
        number = int(above.sum())
        expected += number * (number - 1) / samples.size
    return pairs, expected


def _clustered(processes: Processes, quantiles: Sequence[float]) -> Iterator[str]:
    from scipy.stats import poisson

    for quantile in _tails(quantiles):
        pairs, expected = tail_clusters(processes, quantile)
        if pairs > 1 and poisson.sf(pairs - 1, expected) < LEVEL:
            yield (
                f"slow runs come in a row: {pairs} neighbours above {quantile_name(quantile)} where "
                f"{expected:.1f} are expected"
            )


def drift(processes: Processes) -> tuple[float, float]:
    """(relative change of the median from the first to the last quarters, p-value); (0, 1) for too few."""
    from scipy.stats import mannwhitneyu

    quarters = [samples.size // 4 for samples in processes]
    first = np.concatenate([samples[:size] for samples, size in zip(processes, quarters, strict=True)])
    last = np.concatenate(
        [samples[samples.size - size :] for samples, size in zip(processes, quarters, strict=True)]
    )
    if first.size < _FEWEST_TO_DRIFT:
        return 0.0, 1.0
    shift = float(np.median(last) / np.median(first)) - 1.0
    return shift, float(mannwhitneyu(first, last).pvalue)


def _drifting(processes: Processes) -> Iterator[str]:
    shift, probability = drift(processes)
    if abs(shift) > DRIFT and probability < LEVEL:
        yield f"drift: the median of the last quarter is {shift:+.1%} off that of the first"


def _differing(processes: Processes, quantiles: Sequence[float]) -> Iterator[str]:
    from scipy.stats import chisquare, kruskal

    if len(processes) < 2:
        return
    medians = [float(np.median(samples)) for samples in processes]
    spread = max(medians) / min(medians) - 1.0
    if spread > SPREAD and kruskal(*processes).pvalue < LEVEL:
        listed = ", ".join(f"{median:.5g}" for median in medians)
        yield f"processes differ: their medians are {listed}, {spread:.1%} apart"
    ordered = np.sort(np.concatenate(processes))
    for quantile in _tails(quantiles):
        threshold = sample_quantile(ordered, quantile)
        counts = np.array([(samples > threshold).sum() for samples in processes])
        sizes = np.array([samples.size for samples in processes])
        if counts.sum() and chisquare(counts, counts.sum() * sizes / sizes.sum()).pvalue < LEVEL:
            yield f"processes differ: {', '.join(map(str, counts))} runs above {quantile_name(quantile)}"


def _two_modes(processes: Processes) -> Iterator[str]:
    found = two_modes(np.concatenate(processes))
    if found is not None:
        yield (
            f"two modes: around {found.lower:.4g} and {found.upper:.4g}, {found.upper_share:.0%} of the runs "
            "in the upper one"
        )


def outliers(samples: Doubles) -> Doubles:
    """The samples (positive, any order) that are far off the others, on either side."""
    logarithms = np.log(samples)
    low, middle, high = np.quantile(logarithms, [0.25, 0.5, 0.75])
    limit = max(math.log(OUTLIER_FACTOR), OUTLIER_SPREADS * float(high - low) / 1.349)
    far: Doubles = samples[np.abs(logarithms - middle) > limit]
    return far


def _outliers(processes: Processes, share: float) -> Iterator[str]:
    samples = np.concatenate(processes)
    far = outliers(samples)
    if far.size > max(1.0, share * samples.size):
        yield (
            f"{far.size} of {samples.size} runs are outliers ({far.min():.4g} to {far.max():.4g}, the median "
            f"is {np.median(samples):.4g})"
        )


def _tails(quantiles: Sequence[float]) -> list[float]:
    """Those quantiles that leave few runs above them; around the median, ranks say all there is."""
    return [quantile for quantile in quantiles if quantile >= 0.9]
