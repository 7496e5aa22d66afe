"""Accuracy metrics: cases worked by hand, properties, and data that must not yield a figure."""

from __future__ import annotations

import math
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.measure import (
    Accuracy,
    Tolerance,
    compare_outputs,
    compare_samples,
    judge_outputs,
    worst,
)
from pytest_rknpu.measure.accuracy import degenerate

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, max_side=5)
VALUES = st.floats(-1000, 1000, width=32)
ARRAYS = hnp.arrays(np.float32, SHAPES, elements=VALUES)


def sound(values: NDArray[Any]) -> bool:
    return degenerate(values.astype(np.float64)) is None


def array(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("reference", "actual", "expected"),
    [
        # error (0 0 0 1): 34 / sqrt(30 * 39), 10 log10(30 / 1)
        ((1, 2, 3, 4), (1, 2, 3, 5), Accuracy(4, 34 / math.sqrt(1170), 10 * math.log10(30), 1.0, 0.25)),
        # opposite sign: cosine -1, error -2 times the signal
        ((1, 2, 3), (-1, -2, -3), Accuracy(3, -1.0, 10 * math.log10(14 / 56), 6.0, -4.0)),
        # at right angles
        ((1, 0, 2), (0, 3, 0), Accuracy(3, 0.0, 10 * math.log10(5 / 14), 3.0, 0.0)),
        # half the signal: the cosine does not see it, the other figures do
        ((2, -4, 6), (1, -2, 3), Accuracy(3, 1.0, 10 * math.log10(56 / 14), 3.0, -2 / 3)),
        ((1, 2, 3), (1, 2, 3), Accuracy(3, 1.0, math.inf, 0.0, 0.0)),
    ],
)
def test_cases_worked_by_hand(
    reference: tuple[float, ...], actual: tuple[float, ...], expected: Accuracy
) -> None:
    found = compare_outputs(array(*reference), array(*actual))
    assert found.count == expected.count
    for name in ("cosine", "sqnr_db", "max_error", "bias"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-12), name


@pytest.mark.parametrize(
    ("reference", "actual", "error", "words"),
    [
        ([], [], HarnessError, "nothing was compared"),
        ([1, 2], [1, 2, 3], ConformanceFailure, "shape"),
        ([1, 2], [[1, 2]], ConformanceFailure, "shape"),
        ([7], [7], Inconclusive, "one element"),
        ([1, 1, 1], [1, 2, 3], Inconclusive, "reference is constant"),
        ([1, 2, 3], [5, 5, 5], Inconclusive, "output is constant"),
        ([0, 0, 0], [1, 2, 3], Inconclusive, "reference is all zero"),
        ([1, 2, 3], [0, 0, 0], Inconclusive, "output is all zero"),
        ([1, 2, 3, 4], [1, 3, 3, 3], Inconclusive, "output is saturated: 75% .* highest"),
        ([1, -3, -3, -3], [1, 2, 3, 4], Inconclusive, "reference is saturated: 75% .* lowest"),
        ([1, 2, 3], [1, math.nan, 3], ConformanceFailure, "1 of 3 elements that are not finite"),
        ([1, 2, 3], [1, math.inf, math.nan], ConformanceFailure, "2 of 3"),
        ([1, math.nan, 3], [1, 2, 3], Inconclusive, "reference has 1 elements"),
    ],
)
def test_data_that_yield_no_figure(
    reference: list[float], actual: list[float], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        compare_outputs(np.array(reference, np.float64), np.array(actual, np.float64))


def test_what_relu_leaves_is_not_saturation() -> None:
    relu = array(0, 0, 0, 0, 1, 2)
    assert compare_outputs(relu, relu).cosine == pytest.approx(1.0)


@given(ARRAYS.filter(sound))
def test_equal_arrays_are_perfect(values: NDArray[np.float32]) -> None:
    found = compare_outputs(values, values.copy())
    assert found.cosine == pytest.approx(1.0)
    assert found.sqnr_db == math.inf
    assert (found.max_error, found.bias, found.count) == (0.0, 0.0, values.size)


@given(st.data())
def test_agrees_with_the_formulas_written_plainly(data: st.DataObject) -> None:
    reference = data.draw(ARRAYS.filter(sound))
    actual = data.draw(hnp.arrays(np.float32, reference.shape, elements=VALUES).filter(sound))
    x, y = reference.astype(np.float64).ravel(), actual.astype(np.float64).ravel()
    assume(np.abs(x).max() > 1e-3)
    assume(np.abs(y).max() > 1e-3)
    assume(np.abs(y - x).max() > 1e-3)
    found = compare_outputs(reference, actual)
    assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=1e-9)
    assert found.sqnr_db == pytest.approx(10 * np.log10((x @ x) / ((y - x) @ (y - x))), abs=1e-6)
    assert found.max_error == pytest.approx(np.abs(y - x).max())
    assert found.bias == pytest.approx((y - x).mean(), abs=1e-9)


@given(st.data(), st.integers(-40, 40))
def test_common_scale_changes_errors_alone(data: st.DataObject, exponent: int) -> None:
    reference = data.draw(ARRAYS.filter(sound)).astype(np.float64)
    actual = data.draw(hnp.arrays(np.float32, reference.shape, elements=VALUES).filter(sound)).astype(float)
    factor = 2.0**exponent
    plain, scaled = compare_outputs(reference, actual), compare_outputs(reference * factor, actual * factor)
    assert scaled.cosine == plain.cosine
    assert scaled.sqnr_db == plain.sqnr_db
    assert scaled.max_error == plain.max_error * factor
    assert scaled.bias == plain.bias * factor


@given(ARRAYS.filter(sound), st.floats(0.5, 100))
def test_an_offset_is_the_bias(values: NDArray[np.float32], offset: float) -> None:
    reference = values.astype(np.float64)
    actual = reference + offset
    assume(sound(actual))
    found = compare_outputs(reference, actual)
    assert found.bias == pytest.approx(offset, rel=1e-6)
    assert found.max_error == pytest.approx(offset, rel=1e-6)


ANYTHING = hnp.arrays(np.float64, SHAPES, elements=st.floats(allow_nan=True, allow_infinity=True))


@given(ANYTHING, ANYTHING)
def test_no_input_yields_another_error_or_a_figure_that_is_no_number(
    reference: NDArray[np.float64], actual: NDArray[np.float64]
) -> None:
    try:
        found = compare_outputs(reference, actual)
    except (ConformanceFailure, HarnessError, Inconclusive):
        return
    assert -1.0 <= found.cosine <= 1.0
    assert not any(math.isnan(value) for _, value, _ in found.measurements())


def test_samples_are_judged_one_by_one() -> None:
    """Right on two inputs and broken on the third: the whole batch's cosine would still look fine."""
    reference = np.stack([array(100, 200, 300), array(400, 500, 600), array(1, 2, 3)])
    actual = reference.copy()
    actual[2] = array(3, 2, 1)
    assert compare_outputs(reference, actual).cosine > 0.9999
    results = compare_samples(reference, actual)
    assert [round(r.cosine, 3) for r in results] == [1.0, 1.0, round(10 / 14, 3)]
    assert worst(results).cosine == pytest.approx(10 / 14)
    assert worst(results).count == 9


def test_a_degenerate_sample_is_named() -> None:
    reference = np.arange(9, dtype=np.float32).reshape(3, 3)
    actual = reference.copy()
    actual[1] = 4
    with pytest.raises(Inconclusive, match=r"sample 1: mistrusted: the output is constant \(4\)"):
        compare_samples(reference, actual)


def test_one_element_a_sample_is_compared_over_the_samples() -> None:
    """An angle, a class: no cosine of its own, but a largest error, and a bias."""
    angles = np.arange(4, dtype=np.float32).reshape(4, 1)
    wrong = angles.copy()
    wrong[2] += 0.5
    (accuracy,) = compare_samples(angles, wrong)
    assert accuracy.count == 4
    assert (accuracy.max_error, accuracy.bias) == (pytest.approx(0.5), pytest.approx(0.125))
    with pytest.raises(Inconclusive, match="constant"):
        compare_samples(np.ones((4, 1)), angles)
    with pytest.raises(Inconclusive, match="one element"):
        compare_samples(angles[:1], angles[:1])


@pytest.mark.parametrize(
    ("tolerance", "judged"),
    [
        (Tolerance(0.99, -inf, inf, inf), False),
        (Tolerance(-1.0, 20.0, inf, inf), False),
        (Tolerance(0.99, -inf, 0.6, inf), True),
        (Tolerance(-1.0, -inf, inf, 0.2), True),
        (Tolerance(-1.0, -inf, inf, inf), True),  # nothing is declared: it is measured
    ],
)
def test_over_single_elements_a_cosine_judges_none_of_them(tolerance: Tolerance, judged: bool) -> None:
    angles = np.arange(400, dtype=np.float32).reshape(400, 1)
    wrong = angles.copy()
    wrong[3] = 2.5
    if judged:
        assert judge_outputs([angles], [wrong], [tolerance], lambda *_: None) == []
    else:
        with pytest.raises(
            Inconclusive, match=r"output 0 has one element for each sample, .*declare max_error"
        ):
            judge_outputs([angles], [wrong], [tolerance], lambda *_: None)


@pytest.mark.parametrize("shape", [(0,), (0, 10), ()])
def test_no_sample_is_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(HarnessError, match="no sample"):
        compare_samples(np.zeros(shape), np.zeros(shape))
    with pytest.raises(HarnessError, match="no result"):
        worst([])


def test_the_worst_bias_keeps_its_sign() -> None:
    results = [Accuracy(1, 1, 40, 1, 0.1), Accuracy(1, 0.9, 50, 3, -0.4), Accuracy(1, 1, 30, 2, 0.3)]
    assert worst(results) == Accuracy(3, 0.9, 30, 3, -0.4)
