"""What n clean iterations prove."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.measure import fault_rate_bound, iterations_for_bound


def test_the_figures_of_the_catalogue() -> None:
    """299 iterations: 1 % at 95 %; 2,995: 0.1 %."""
    assert fault_rate_bound(298, 0.95) > 0.01 >= fault_rate_bound(299, 0.95)
    assert fault_rate_bound(2994, 0.95) > 0.001 >= fault_rate_bound(2995, 0.95)
    assert iterations_for_bound(0.01, 0.95) == 299
    assert iterations_for_bound(0.001, 0.95) == 2995


@pytest.mark.parametrize(
    ("n", "confidence", "bound"),
    [(0, 0.95, 1.0), (1, 0.95, 0.95), (2, 0.75, 0.5), (3, 0.875, 0.5), (1, 0.5, 0.5)],
)
def test_cases_worked_by_hand(n: int, confidence: float, bound: float) -> None:
    assert fault_rate_bound(n, confidence) == pytest.approx(bound)


SHARES = st.floats(1e-6, 1 - 1e-6)


@given(SHARES, SHARES)
def test_iterations_are_the_fewest_that_suffice(bound: float, confidence: float) -> None:
    n = iterations_for_bound(bound, confidence)
    assert fault_rate_bound(n, confidence) <= bound
    assert n == 1 or fault_rate_bound(n - 1, confidence) > bound


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.999])
def test_the_bound_of_n_iterations_asks_for_n(confidence: float) -> None:
    """Where the rounded quotient of logarithms falls on either side of n."""
    for n in range(1, 2000):
        assert iterations_for_bound(fault_rate_bound(n, confidence), confidence) == n


@given(st.integers(1, 10**9), SHARES)
def test_at_the_bound_a_clean_run_is_as_likely_as_the_confidence_leaves(n: int, confidence: float) -> None:
    import math

    bound = fault_rate_bound(n, confidence)
    assert 0 < bound < 1
    if bound < 1 - 1e-12:
        assert math.exp(n * math.log1p(-bound)) == pytest.approx(1 - confidence, rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_shares_outside_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        fault_rate_bound(10, share)
    with pytest.raises(ValueError, match="bound"):
        iterations_for_bound(share, 0.95)


def test_a_bound_that_no_run_reaches_is_refused() -> None:
    assert iterations_for_bound(1e-9, 0.95) == 2995732273
    with pytest.raises(ValueError, match="no run is that long"):
        iterations_for_bound(9e-10, 0.95)


def test_negative_iterations_are_refused() -> None:
    with pytest.raises(ValueError, match="not -1"):
        fault_rate_bound(-1, 0.95)
