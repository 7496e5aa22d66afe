"""Decisions on quantiles: exact, consistent with their bounds, and as MLPerf's early stopping has them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure import (
    Rule,
    bounds,
    chances,
    decide,
    quantile_name,
    sample_quantile,
    smallest_to_pass,
    smallest_useful_count,
)
from pytest_rknpu.measure.quantiles import (
    fail_tail,
    least_above_to_fail,
    most_above_to_pass,
    pass_tail,
    require_enough,
)

QUANTILES = st.sampled_from([0.5, 0.9, 0.95, 0.99])


def exact_tail(count: int, above: int, exceedance: Fraction) -> Fraction:
    """P(Bin(count, exceedance) <= above) in whole numbers."""
    return sum(
        (math.comb(count, k) * exceedance**k * (1 - exceedance) ** (count - k) for k in range(above + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize(("count", "above"), [(1, 0), (20, 3), (59, 0), (59, 1), (200, 7), (200, 200)])
def test_tails_are_exact(count: int, above: int) -> None:
    exceedance = Fraction(1, 20)
    assert pass_tail(count, above, 0.95) == pytest.approx(
        float(exact_tail(count, above, exceedance)), rel=1e-9
    )
    at_least = 1 - (exact_tail(count, above - 1, exceedance) if above else Fraction(0))
    assert fail_tail(count, above, 0.95) == pytest.approx(float(at_least), rel=1e-9)


@pytest.mark.parametrize(
    ("quantile", "alpha", "queries"),
    [
        (0.90, 0.01, 64),  # MLPerf inference, single stream
        (0.99, 0.01, 662),  # MLPerf inference, multi stream
    ],
)
def test_early_stopping_needs_as_many_queries_as_mlperf(quantile: float, alpha: float, queries: int) -> None:
    """With one query over the latency, which early stopping grants at least."""
    assert smallest_to_pass(quantile, alpha, above=1) == queries
    assert most_above_to_pass(queries, quantile, alpha) == 1
    assert most_above_to_pass(queries - 1, quantile, alpha) == 0


@pytest.mark.parametrize(
    ("queries", "discarded"), [(64, 0), (2048, 172), (2116, 178), (2145, 181), (7469, 685)]
)
def test_early_stopping_discards_what_published_logs_say(queries: int, discarded: int) -> None:
    """LoadGen's "Would discard N highest latency queries" for p90 at 99 %, from published result logs.

    It discards one fewer than may be over the latency, since it reports the next one as the estimate.
    """
    assert most_above_to_pass(queries, 0.90, 0.01) - 1 == discarded


@pytest.mark.parametrize(
    ("quantile", "alpha", "needed"),
    [(0.5, 0.05, 5), (0.95, 0.05, 59), (0.99, 0.05, 299), (0.99, 0.01, 459), (0.9, 0.01, 44)],
)
def test_the_smallest_useful_count(quantile: float, alpha: float, needed: int) -> None:
    assert smallest_useful_count(quantile, alpha) == needed
    assert smallest_to_pass(quantile, alpha) == needed
    assert decide(needed, 0, quantile, alpha) == "pass"
    assert decide(needed, needed, quantile, alpha) == "fail"
    with pytest.raises(ConfigurationError, match=rf"at least {needed} are needed"):
        decide(needed - 1, 0, quantile, alpha)


def test_a_smaller_alpha_to_fail_needs_more() -> None:
    """For the median the chance to fail is what runs out first."""
    assert smallest_useful_count(0.5, 0.05, 0.05 / 3) == 6
    with pytest.raises(ConfigurationError, match=r"5 samples cannot decide p50 at alpha 0\.05"):
        require_enough(5, 0.5, 0.05, 0.05 / 3)


def test_a_thousand_samples() -> None:
    """The counts that docs/latency.md names."""
    assert [most_above_to_pass(1000, q, 0.05) for q in (0.5, 0.95, 0.99)] == [473, 38, 4]
    assert [least_above_to_fail(1000, q, 0.05) for q in (0.5, 0.95, 0.99)] == [527, 63, 16]
    assert [decide(1000, above, 0.99, 0.05) for above in (4, 5, 15, 16)] == [
        "pass",
        "inconclusive",
        "inconclusive",
        "fail",
    ]


@given(
    count=st.integers(1, 2000),
    share=st.floats(0, 1),
    quantile=QUANTILES,
    alpha=st.sampled_from([0.2, 0.05, 0.001]),
)
@settings(max_examples=200, deadline=None)
def test_thresholds_are_where_the_decision_turns(
    count: int, share: float, quantile: float, alpha: float
) -> None:
    few, many = most_above_to_pass(count, quantile, alpha), least_above_to_fail(count, quantile, alpha)
    assert few < many
    if few >= 0:
        assert pass_tail(count, few, quantile) <= alpha
    if few < count:
        assert pass_tail(count, few + 1, quantile) > alpha
    if many <= count:
        assert fail_tail(count, many, quantile) <= alpha
    assert fail_tail(count, many - 1, quantile) > alpha
    above = round(share * count)
    if count >= smallest_useful_count(quantile, alpha):
        expected = "pass" if above <= few else "fail" if above >= many else "inconclusive"
        assert decide(count, above, quantile, alpha) == expected


@given(
    samples=st.lists(st.integers(1, 50), min_size=1, max_size=400),
    budget=st.integers(0, 51),
    quantile=QUANTILES,
)
@settings(max_examples=200, deadline=None)
def test_bounds_say_what_verdicts_say(samples: list[int], budget: int, quantile: float) -> None:
    """Also with many equal samples."""
    ordered = sorted(samples)
    found = bounds(ordered, quantile, 0.05)
    above = sum(sample > budget for sample in samples)
    assert (found.upper <= budget) == (pass_tail(len(samples), above, quantile) <= 0.05)
    assert (found.lower > budget) == (fail_tail(len(samples), above, quantile) <= 0.05)
    assert found.lower <= sample_quantile(ordered, quantile) <= found.upper


def test_bounds_without_enough_samples_are_infinite() -> None:
    found = bounds(list(range(58)), 0.95, 0.05)
    assert found.upper == math.inf
    assert bounds([1.0], 0.5, 0.05).lower == -math.inf
    assert bounds(list(range(59)), 0.95, 0.05).upper == 58


def test_bounds_cover_the_quantile_as_often_as_they_say() -> None:
    """Of 4,000 seeded samples of 300, each side misses in at most 5 %, and what chance adds (three sigma)."""
    random = np.random.default_rng(1)
    draws = np.sort(random.random((4000, 300)), axis=1)
    for quantile in (0.5, 0.95, 0.99):
        found = [bounds(row, quantile, 0.05) for row in draws]
        for misses in (
            np.mean([one.lower > quantile for one in found]),
            np.mean([one.upper < quantile for one in found]),
        ):
            assert misses <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)


@pytest.mark.parametrize(
    ("samples", "quantile", "expected"),
    [
        ([1, 2, 3, 4], 0.5, 2),
        ([1, 2, 3], 0.5, 2),
        (range(1, 101), 0.95, 95),
        (range(1, 21), 0.95, 19),
        ([7], 0.99, 7),
    ],
)
def test_the_sample_quantile_is_a_sample(samples: list[int], quantile: float, expected: int) -> None:
    assert sample_quantile(list(samples), quantile) == expected


def test_looks_divide_alpha() -> None:
    assert Rule(0.05, looks=5).per_look == pytest.approx(0.01)
    for wrong in ({"alpha": 0.0}, {"alpha": 0.5}, {"looks": 0}):
        with pytest.raises(ValueError, match=r"lies between|looked at"):
            Rule(**wrong)


def test_chances_are_those_of_the_binomial() -> None:
    few, many = chances(1000, 0.99, 0.01, 0.05)
    assert few == pytest.approx(pass_tail(1000, 4, 0.99))
    assert many == pytest.approx(fail_tail(1000, 16, 0.99))
    assert chances(1000, 0.99, 0.0, 0.05) == (1.0, 0.0)
    assert chances(1000, 0.99, 1.0, 0.05) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("count", "above", "quantile"), [(0, 0, 0.5), (5, 6, 0.5), (5, -1, 0.5), (5, 0, 1.0)]
)
def test_what_is_no_count(count: int, above: int, quantile: float) -> None:
    with pytest.raises(ValueError, match=r"is no count|lies between"):
        pass_tail(count, above, quantile)


def test_names() -> None:
    assert [quantile_name(q) for q in (0.5, 0.95, 0.99, 0.999)] == ["p50", "p95", "p99", "p99.9"]
