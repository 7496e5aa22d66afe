"""Differences counted in steps of a quantised output (SPARSE-04).

The values of an int8 output lie on a grid, real = (stored - zero point) * scale. The scale is read off the
values themselves: among many values on few hundred places some are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive

#: An int8 output has no more places; more different values are no such grid.
PLACES = 256


@dataclass(frozen=True)
class StepDifference:
    """Of ``count`` elements a ``share`` differs, by at most ``largest`` steps of ``step`` output units."""

    count: int
    share: float
    largest: int
    step: float


def grid_step(values: NDArray[Any]) -> float:
    """The smallest distance between two different values, any shape.

    Inconclusive: all are equal. HarnessError: there are more different ones than an int8 grid has places.
    """
    different = np.unique(values.astype(np.float64))
    if different.size < 2:
        raise Inconclusive("mistrusted: the output is constant")
    if different.size > PLACES:
        raise HarnessError(f"{different.size} different values are no int8 output")
    return float(np.diff(different).min())


def count_steps(reference: NDArray[Any], other: NDArray[Any]) -> StepDifference:
    """How many steps of the coarser of both grids the arrays differ by.

    ConformanceFailure: shapes differ, or numbers are not finite. Others as ``grid_step``.
    """
    if reference.shape != other.shape:
        raise ConformanceFailure(f"output has shape {other.shape}, its reference {reference.shape}")
    if not (np.isfinite(reference).all() and np.isfinite(other).all()):
        raise ConformanceFailure("outputs are not all finite")
    step = max(grid_step(reference), grid_step(other))
    steps = np.rint(np.abs(reference.astype(np.float64) - other.astype(np.float64)) / step)
    return StepDifference(reference.size, float((steps > 0).mean()), int(steps.max()), step)
