"""What is flaky, and how latency moved: the pure parts."""

from __future__ import annotations

import pytest
from scipy.stats import binom, binomtest

from pytest_rknpu.history.flaky import Flaky, share_bounds
from pytest_rknpu.history.trends import Point, steps, trends
from pytest_rknpu.verdict import Outcome

P, F = Outcome.PASS, Outcome.FAIL


def test_what_could_not_always_be_judged_is_no_change_of_verdict() -> None:
    assert Flaky({P: 3, F: 1}, 2, 1, 1).verdict_changes
    assert Flaky({P: 3, Outcome.WAIVED: 1}, 2, 1, 1).verdict_changes
    assert not Flaky({P: 3, Outcome.INCONCLUSIVE: 1}, 2, 1, 1).verdict_changes
    assert not Flaky({F: 3, Outcome.INFRA: 1}, 2, 1, 1).verdict_changes


def test_everything_but_a_pass_counts_as_not_passed() -> None:
    found = Flaky({P: 3, F: 1, Outcome.INFRA: 2}, 2, 1, 1)
    assert (found.attempts, found.not_passed) == (6, 3)
    assert found.bounds == share_bounds(3, 6)


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (0, 20), (1, 20), (19, 20), (20, 20), (7, 300)])
def test_bounds_are_those_of_clopper_and_pearson(count: int, of: int) -> None:
    interval = binomtest(count, of).proportion_ci(0.95, "exact")
    assert share_bounds(count, of) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("truth", [0.003, 0.05, 0.5, 0.9])
def test_bounds_hold_the_truth_as_often_as_they_say(truth: float) -> None:
    """Over all results that 30 attempts can have, each weighed by its probability."""
    held = sum(
        binom.pmf(count, 30, truth)
        for count in range(31)
        if share_bounds(count, 30)[0] <= truth <= share_bounds(count, 30)[1]
    )
    assert held >= 0.95


@pytest.mark.parametrize(("count", "of"), [(1, 0), (2, 1), (-1, 3)])
def test_what_is_no_count(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="is no count"):
        share_bounds(count, of)


def point(run: int, value: float, *, outcome: Outcome = P, disturbed: str = "", width: float = 0.01) -> Point:
    return Point(run, outcome, value, value - width, value + width, 1000, 5, disturbed, {})


def test_a_line_moves_where_its_bounds_lie_apart_beyond_the_floor() -> None:
    (step,) = steps([point(0, 2.0), point(1, 2.01), point(2, 2.4), point(3, 2.4)])
    assert (step.before.run, step.after.run, step.slower) == (1, 2, True)
    assert step.relative == pytest.approx(2.4 / 2.01 - 1)
    (step,) = steps([point(0, 2.4), point(1, 2.0)])
    assert not step.slower
    assert steps([point(0, 2.0, width=0.001), point(1, 2.015, width=0.001)]) == []  # within 1 %


def test_what_is_not_fit_is_compared_with_nothing() -> None:
    slow = {"outcome": Outcome.INCONCLUSIVE}
    assert steps([point(0, 2.0), point(1, 9.0, **slow), point(2, 2.0)]) == []
    assert steps([point(0, 2.0), point(1, 9.0, disturbed="a clock moved"), point(2, 2.0)]) == []
    assert len(steps([point(0, 2.0), point(1, 9.0), point(2, 2.0)])) == 2


def test_without_bounds_nothing_is_said() -> None:
    unbounded = Point(1, P, 9.0, None, None, 3, 1, "", {})
    assert steps([point(0, 2.0), unbounded, point(2, 2.0)]) == []


def test_lines_are_kept_apart_and_in_the_order_of_runs() -> None:
    keys = [("t", "m", "", 0.5), ("t", "m", "", 0.99), ("t", "m", "CORE_0", 0.5), ("u", "m", "", 0.5)]
    found = trends((key, point(run, 1.0)) for run in (2, 0, 1) for key in keys)
    assert [(one.test, one.model, one.core_mask, one.quantile) for one in found] == sorted(keys)
    assert all([one.run for one in line.points] == [0, 1, 2] for line in found)
