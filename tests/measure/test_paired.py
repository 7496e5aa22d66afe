"""Exact McNemar, the bound on the loss, and the judgement by both (SPARSE-05)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_rknpu.errors import HarnessError, Inconclusive
from pytest_rknpu.measure import Paired, judge_loss, loss_bound, mcnemar, pair, samples_for_margin


def nothing(name: str, value: float, unit: str) -> None:
    pass


def test_pairs_are_counted() -> None:
    first = np.array([1, 1, 1, 0, 0], bool)
    second = np.array([1, 0, 0, 1, 0], bool)
    paired = pair(first, second)
    assert (paired.both, paired.lost, paired.gained, paired.neither) == (1, 2, 1, 1)
    assert (paired.count, paired.loss) == (5, 0.2)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 4)])
def test_nothing_to_compare_is_an_error(first: int, second: int) -> None:
    with pytest.raises(HarnessError, match="nothing was compared"):
        pair(np.ones(first, bool), np.ones(second, bool))


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_sum_of_both_tails(lost: int, gained: int) -> None:
    discordant = lost + gained
    fewer = sum(math.comb(discordant, k) for k in range(min(lost, gained) + 1))
    expected = min(1.0, 2 * fewer / 2**discordant)
    assert mcnemar(Paired(100, lost, gained, 3)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [(0, 0, 1.0), (5, 0, 0.0625), (6, 0, 0.03125), (1, 1, 1.0), (9, 1, 22 / 1024)],
)
def test_mcnemar_by_hand(lost: int, gained: int, p: float) -> None:
    assert mcnemar(Paired(50, lost, gained, 0)) == pytest.approx(p)


def test_the_bound_covers_the_loss_as_often_as_it_says() -> None:
    """Simulated pairs with a known loss: the bound is below it in no more than 5 % of them."""
    random = np.random.default_rng(7)
    lost, gained, count = 0.03, 0.01, 400
    drawn = random.multinomial(count, [1 - lost - gained, lost, gained], size=2000)
    rows, times = np.unique(drawn, axis=0, return_counts=True)
    bounds = np.array([loss_bound(Paired(*(int(n) for n in row), 0)) for row in rows])
    assert times[bounds < lost - gained].sum() / times.sum() <= 0.05


def test_the_bound_grows_with_what_is_lost_and_shrinks_with_samples() -> None:
    bounds = [loss_bound(Paired(400 - lost, lost, 0, 0)) for lost in range(6)]
    assert all(a < b for a, b in pairwise(bounds))
    assert loss_bound(Paired(4000 - 30, 30, 0, 0)) < loss_bound(Paired(400 - 3, 3, 0, 0))
    # Clopper and Pearson's upper bound for 3 of 400 at 97.5 %, from tables.
    assert loss_bound(Paired(397, 3, 0, 0)) == pytest.approx(0.02176, abs=2e-5)


@pytest.mark.parametrize("margin", [0.01, 0.03, 0.1])
def test_fewest_samples_are_the_fewest(margin: float) -> None:
    n = samples_for_margin(margin)
    assert loss_bound(Paired(n, 0, 0, 0)) <= margin < loss_bound(Paired(n - 1, 0, 0, 0))


@pytest.mark.parametrize(("margin", "confidence"), [(0.0, 0.95), (1.0, 0.95), (0.1, 1.0)])
def test_shares_outside_their_range(margin: float, confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        samples_for_margin(margin, confidence)


def test_a_small_loss_passes_and_is_reported() -> None:
    figures: dict[str, float] = {}
    assert judge_loss(Paired(397, 3, 0, 0), 0.03, lambda n, v, u: figures.update({n: v})) == []
    assert figures["labelled"] == 400
    assert figures["right before, wrong now"] == 3
    assert figures["McNemar p"] == 0.25
    assert figures["declared margin"] == 0.03


def test_a_large_loss_fails() -> None:
    (problem,) = judge_loss(Paired(370, 30, 0, 0), 0.03, nothing)
    assert problem.startswith("30 of 400 samples lost, 0 gained, exact McNemar p = ")
    assert problem.endswith("declared: at most 3.00%")


@pytest.mark.parametrize("count", [400, 2000])
@pytest.mark.parametrize("gained", [0.0, 0.01])
def test_a_loss_as_large_as_the_margin_seldom_fails(count: int, gained: float) -> None:
    """Simulated: it failed 43 % of such pairs when a loss beyond the margin only had to be some loss."""
    random = np.random.default_rng(11)
    margin = 0.03
    lost = margin + gained
    drawn = random.multinomial(count, [1 - lost - gained, lost, gained], size=600)
    rows, times = np.unique(drawn, axis=0, return_counts=True)
    verdicts = np.array([verdict(Paired(*(int(n) for n in row), 0), margin) for row in rows])
    for wrong in ("fail", "pass"):
        assert times[verdicts == wrong].sum() / times.sum() <= 0.05


def verdict(paired: Paired, margin: float) -> str:
    try:
        return "fail" if judge_loss(paired, margin, nothing) else "pass"
    except Inconclusive:
        return "inconclusive"


def test_a_loss_that_may_be_within_the_margin_is_inconclusive() -> None:
    """15 of 400 is 3.75 %, surely some loss (p < 0.001), and not surely more than 3 %."""
    assert verdict(Paired(385, 15, 0, 0), 0.03) == "inconclusive"


@pytest.mark.parametrize("paired", [Paired(392, 8, 0, 0), Paired(20, 0, 0, 0), Paired(386, 13, 8, 0)])
def test_too_few_samples_are_inconclusive(paired: Paired) -> None:
    with pytest.raises(Inconclusive, match="122 samples would be enough"):
        judge_loss(paired, 0.03, nothing)


def test_gains_do_not_fail() -> None:
    assert judge_loss(Paired(370, 0, 30, 0), 0.03, nothing) == []


def test_as_many_gained_as_lost_is_no_loss_but_needs_samples() -> None:
    """The models differ in a tenth of all answers: equal top-1 alone would not see that."""
    with pytest.raises(Inconclusive, match="20 of 400 samples lost, 20 gained"):
        judge_loss(Paired(360, 20, 20, 0), 0.03, nothing)
