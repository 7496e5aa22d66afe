"""Do samples have two modes? A kernel density estimate with a valley in it says so.

The NPU of a board may alternate between two speeds at a fixed clock (old#242: 33.5 and 40 ms). Such samples
have no middle that means anything: a median jumps from one mode to the other with the shares.

The density of the logarithm of the samples is estimated with a Gaussian kernel (Silverman's bandwidth). Two
modes are reported where a local minimum parts the samples so that each side holds enough of them, the density
there is well below both sides' peaks, and the peaks are apart by a share that matters. On the logarithm,
since latencies are skewed: on their own scale, the few samples of a long tail lie so far apart that each pair
has a valley between it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

LEAST_SHARE = 0.1
"""Of all samples, on the smaller side of the valley."""
VALLEY = 0.5
"""Of the lower peak: the density in the valley is at most that."""
LEAST_DISTANCE = 0.02
"""Between the peaks, relative to the lower one. Below it two modes are of no consequence."""
FEWEST = 40
"""Fewer samples show bumps by chance."""
_GRID = 512
_TRIMMED = 0.01  # at each end: an outlier would stretch the grid
_NARROWEST = 1e-3  # bandwidth, relative to the samples: a clock's steps are no modes


@dataclass(frozen=True)
class TwoModes:
    """Where two modes lie, in the unit of the samples, and which share of the samples is the upper one's."""

    lower: float
    upper: float
    upper_share: float


def two_modes(samples: Doubles) -> TwoModes | None:
    """The two modes of positive samples (in any order); None where there is one, or too few to tell."""
    if samples.size < FEWEST:
        return None
    logarithms = np.sort(np.log(samples))
    low, high = np.quantile(logarithms, [_TRIMMED, 1 - _TRIMMED])
    inner = logarithms[(logarithms >= low) & (logarithms <= high)]
    bandwidth = _bandwidth(inner)
    grid = np.linspace(inner[0] - 3 * bandwidth, inner[-1] + 3 * bandwidth, _GRID)
    density = _density(inner, grid, bandwidth)
    best: tuple[float, int] | None = None
    for valley in _minima(density):
        depth = _depth(logarithms, grid, density, valley)
        if depth is not None and (best is None or depth < best[0]):
            best = (depth, valley)
    if best is None:
        return None
    lower, upper = _peaks(density, best[1])
    share = float((logarithms > grid[best[1]]).mean())
    return TwoModes(math.exp(grid[lower]), math.exp(grid[upper]), share)


def _bandwidth(values: Doubles) -> float:
    """Silverman's rule of thumb, with the quartiles where they are narrower than the standard deviation."""
    quartiles = np.quantile(values, [0.25, 0.75])
    spreads = [float(values.std()), float(quartiles[1] - quartiles[0]) / 1.349]
    spread: float = min((spread for spread in spreads if spread > 0), default=0.0)
    return max(0.9 * spread * math.pow(values.size, -0.2), _NARROWEST)


def _density(values: Doubles, grid: Doubles, bandwidth: float) -> Doubles:
    """The sum of kernels, up to a factor."""
    # Samples are put into bins of the grid first: thousands of samples cost as much as hundreds.
    width = grid[1] - grid[0]
    counts = np.bincount(np.rint((values - grid[0]) / width).astype(np.int64), minlength=grid.size)
    reach = math.ceil(4 * bandwidth / width)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * width / bandwidth) ** 2)
    smoothed: Doubles = np.convolve(counts, kernel)[reach : reach + grid.size]
    return smoothed


def _minima(density: Doubles) -> list[int]:
    """The middles of the places where the density is lower than before and after."""
    slopes = np.sign(np.diff(density))
    turns = np.flatnonzero(slopes)
    return [int(a + 1 + b) // 2 for a, b in pairwise(turns) if slopes[a] < 0 < slopes[b]]


def _peaks(density: Doubles, valley: int) -> tuple[int, int]:
    return int(density[:valley].argmax()), valley + int(density[valley:].argmax())


def _depth(logarithms: Doubles, grid: Doubles, density: Doubles, valley: int) -> float | None:
    """Density in the valley relative to the lower peak, or None where it does not part two modes."""
    above = float((logarithms > grid[valley]).mean())
    lower, upper = _peaks(density, valley)
    depth = float(density[valley] / min(density[lower], density[upper]))
    apart = math.expm1(grid[upper] - grid[lower])
    if min(above, 1 - above) < LEAST_SHARE or depth > VALLEY or apart < LEAST_DISTANCE:
        return None
    return depth
