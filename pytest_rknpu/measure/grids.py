"""Whether an output lies on an int8 grid at all: a user's model may compute its last layer in float."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.measure.steps import PLACES

#: How far from a whole number of steps a value may be; float32 holds 255 steps far more exactly.
_OFF_GRID = 0.01


def int8_step(values: NDArray[Any]) -> float | None:
    """The step of the int8 grid that all values (any shape) lie on, or None where they lie on none.

    A constant output has no step. Few values of a float output may happen to be few enough for a grid: they
    then are no whole numbers of the smallest distance between them, or span more than 255 of it.
    """
    different = np.unique(values.astype(np.float64))
    if not 2 <= different.size <= PLACES:
        return None
    step = float(np.diff(different).min())
    places = (different - different[0]) / step
    if places[-1] > PLACES - 0.5 or np.abs(places - np.rint(places)).max() > _OFF_GRID:
        return None
    return step
