"""Whether an output lies on an int8 grid, and with which step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_rknpu.measure.grids import int8_step


@given(
    st.floats(1e-4, 1e3), st.integers(-128, 127), st.lists(st.integers(-128, 127), min_size=3, max_size=60)
)
def test_values_of_a_grid_have_its_step_or_a_multiple(scale: float, zero: int, stored: list[int]) -> None:
    assume(len(set(stored)) > 1)
    values = ((np.array(stored) - zero) * np.float32(scale)).astype(np.float32)
    step = int8_step(values)
    if step is not None:  # a coarser grid cannot be told from gaps
        assert step / scale == pytest.approx(round(step / scale), abs=0.01)
    neighbours = np.append(values, np.float32((stored[0] - zero + 1) * np.float32(scale)))
    if max(stored) - min(stored) < 250:
        assert int8_step(neighbours) == pytest.approx(scale, rel=1e-3)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(5),
        np.random.default_rng(0).normal(size=50),
        np.random.default_rng(0).normal(size=5000),
        np.array([0.0, 1.0, 300.0]),
        np.array([0.0, 0.3, 1.0]),
    ],
    ids=["constant", "few-floats", "many-floats", "too-wide", "uneven"],
)
def test_what_is_no_grid(values: np.ndarray) -> None:
    assert int8_step(values) is None
