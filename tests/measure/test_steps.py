"""Differences counted in steps of the output's grid (SPARSE-04)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.measure import count_steps, grid_step


@given(
    st.lists(st.integers(-128, 126), min_size=2, max_size=60),
    st.integers(-100, 100),
    st.floats(1e-3, 1e3),
    st.integers(-4, 4),
)
def test_steps_are_found_whatever_the_scale(stored: list[int], zero: int, scale: float, moved: int) -> None:
    """One pair of neighbours is enough to see the step."""
    grid = np.array([*stored, stored[0] + 1], np.float32)
    reference = ((grid - zero) * np.float32(scale)).astype(np.float32)
    other = reference.copy()
    other[-1] = (np.float32(stored[0] + 1 + moved) - zero) * np.float32(scale)
    expected = abs(moved)
    # The moved one may leave the reference's neighbour, so the reference alone tells the step.
    assert grid_step(reference) == pytest.approx(scale, rel=1e-3)
    if np.unique(other).size > 1 and grid_step(other) <= grid_step(reference) * 1.001:
        difference = count_steps(reference, other)
        assert difference.largest == expected
        assert difference.share == pytest.approx((expected > 0) / reference.size)


def test_equal_outputs_differ_by_nothing() -> None:
    values = np.array([0.5, 1.0, 2.5])
    difference = count_steps(values, values)
    assert (difference.count, difference.share, difference.largest, difference.step) == (3, 0.0, 0, 0.5)


def test_constant_outputs_have_no_step() -> None:
    with pytest.raises(Inconclusive, match="constant"):
        grid_step(np.ones(9))


def test_a_float_output_has_no_grid() -> None:
    with pytest.raises(HarnessError, match="300 different values are no int8 output"):
        grid_step(np.random.default_rng(0).normal(size=300))


def test_other_shapes_and_numbers_that_are_none() -> None:
    with pytest.raises(ConformanceFailure, match="shape"):
        count_steps(np.zeros(3), np.zeros(4))
    with pytest.raises(ConformanceFailure, match="not all finite"):
        count_steps(np.zeros(3), np.array([0, 1, np.nan]))
