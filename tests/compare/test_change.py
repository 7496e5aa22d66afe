"""The change of a quantile: what is seen, what is not, and how often an alarm is false. Simulated, seeded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compare.make import processes

from pytest_rknpu.measure.comparison import (
    LEAST_PROCESSES,
    NOISE_FLOOR,
    Change,
    change_of,
    holm,
    judge_slower,
    least_runs,
    unfit_to_compare,
)
from pytest_rknpu.measure.comparison import _order_p as order_p
from pytest_rknpu.measure.quantiles import QUANTILES, bounds

ALPHA = 0.05
COMPARISONS = 500


def unchanged(random: np.random.Generator, floor: float, between: float) -> list[Change]:
    """500 models timed twice each on a board that did not change: three quantiles of each."""
    found: list[Change] = []
    for _ in range(COMPARISONS):
        before, after = (processes(random, spread=0.02, between=between) for _ in "AB")
        found += change_of(before, after, floor=floor)
    return found


@pytest.mark.parametrize("between", [0.0, 0.004])
def test_500_unchanged_comparisons_raise_no_alarm(between: float) -> None:
    """Without the noise floor to help, and with processes that differ: at most 5 % of such runs may alarm."""
    random = np.random.default_rng([11, int(1000 * between)])
    alarms = []
    for _ in range(2):
        p_values = [change.p_value for change in unchanged(random, 0.0, between)]
        alarms.append(sum(value <= ALPHA for value in holm(p_values)))
        share = np.mean([value <= ALPHA for value in p_values])
        assert share <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / COMPARISONS)
        if between:  # uncorrected, the same runs would alarm
            assert share * len(p_values) >= 5
    assert alarms == [0, 0]


def test_unchanged_with_the_floor() -> None:
    changes = unchanged(np.random.default_rng(3), NOISE_FLOOR, 0.002)
    assert min(holm([change.p_value for change in changes])) > ALPHA
    covered = np.mean([change.lower <= 0 <= change.upper for change in changes])
    assert covered >= 0.9


def test_one_slower_model_among_500_is_found() -> None:
    random = np.random.default_rng(5)
    changes = unchanged(random, NOISE_FLOOR, 0.0)
    slower = change_of(processes(random, spread=0.02), processes(random, 2.1, spread=0.02))
    corrected = holm([change.p_value for change in [*changes, *slower]])
    directions = [
        one.direction(value, ALPHA) for one, value in zip([*changes, *slower], corrected, strict=True)
    ]
    assert set(directions[: len(changes)]) == {"unchanged"}
    assert directions[len(changes) : len(changes) + 2] == ["slower", "slower"]


@pytest.mark.parametrize(("shift", "seen"), [(1.03, "slower"), (0.97, "faster"), (1.0, "unchanged")])
def test_a_shift_of_three_per_cent_is_seen(shift: float, seen: str) -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        changes = change_of(processes(random), processes(random, 2.0 * shift))
        corrected = holm([change.p_value for change in changes])
        assert changes[0].direction(corrected[0], ALPHA) == seen
        assert changes[0].relative == pytest.approx(shift - 1, abs=0.004)
        assert changes[0].lower < changes[0].relative < changes[0].upper


def test_a_change_within_the_floor_is_none() -> None:
    random = np.random.default_rng(9)
    before, after = processes(random, spread=0.001), processes(random, 2.0 * 1.005, spread=0.001)
    (beyond,) = change_of(before, after, [0.5])
    (any_change,) = change_of(before, after, [0.5], floor=0.0)
    assert beyond.p_value == 1.0
    assert any_change.p_value < 1e-6


def test_a_slower_tail_alone_is_seen() -> None:
    random = np.random.default_rng(13)
    before, after = processes(random), processes(random)
    for one in after:
        one[random.random(one.size) < 0.08] *= 1.2
    p50, p95, _ = change_of(before, after)
    assert p50.p_value > 0.5
    assert p95.p_slower < 1e-4


def test_processes_that_differ_weaken_the_evidence() -> None:
    """1000 runs a side, and yet one process decides: order statistics alone would not see it."""
    random = np.random.default_rng(17)
    before = processes(random)
    after = [
        one * (1.2 if number == 0 else 1.03) for number, one in enumerate(processes(random, between=0.1))
    ]
    (change,) = change_of(before, after, [0.5])
    ordered = [np.sort(np.concatenate(side)) for side in (before, after)]
    assert order_p(ordered[0], ordered[1], 0.5, 1.0) < 1e-9
    assert change.p_value > 0.01


@pytest.mark.parametrize("quantile", QUANTILES)
def test_order_statistics_agree_with_their_bounds(quantile: float) -> None:
    """p <= 2 a just where the bounds at confidence 1 - a lie apart."""
    random = np.random.default_rng(19)
    for shift in (1.0, 1.002, 1.004, 1.01):
        low, high = (np.sort(np.concatenate(processes(random, m))) for m in (2.0, 2.0 * shift))
        p_value = order_p(low, high, quantile, 1.0)
        for a in (0.001, 0.01, 0.05, 0.2):
            apart = bounds(high, quantile, a).lower > bounds(low, quantile, a).upper
            assert apart == (p_value <= 2 * a)


def test_the_same_samples_give_the_same_answer() -> None:
    random = np.random.default_rng(23)
    before, after = processes(random), processes(random)
    assert change_of(before, after) == change_of(before, after)


def test_samples_without_any_spread() -> None:
    """A coarse clock: no division by nothing, and a real step is still seen."""
    flat = [np.full(200, 2.0)] * 5
    (same,) = change_of(flat, flat, [0.5])
    (step,) = change_of(flat, [2.2 * one / 2.0 for one in flat], [0.5])
    assert (same.relative, same.p_value) == (0.0, 1.0)
    assert step.p_value < 1e-6


def test_few_runs_bound_nothing() -> None:
    random = np.random.default_rng(29)
    few = [processes(random, count=2, runs=20) for _ in "AB"]
    *_, p99 = change_of(*few)
    assert (p99.lower, p99.upper) == (-1.0, math.inf)
    assert p99.p_value == 1.0
    needed = least_runs(QUANTILES, ALPHA)
    assert 0.99**needed <= ALPHA / 2 < 0.99 ** (needed - 1)
    enough = [processes(random, runs=math.ceil(needed / 5)) for _ in "AB"]
    assert all(math.isfinite(change.upper) and change.lower > -1 for change in change_of(*enough))


def test_holm_by_hand() -> None:
    """Four p-values: times 4, 3, 2, 1 in ascending order, never falling, at most 1."""
    assert holm([0.03, 0.01, 0.04, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_verdicts_against_a_baseline() -> None:
    random = np.random.default_rng(31)
    before = processes(random)

    def decision(shift: float, spread: float = 0.01) -> str:
        changes = change_of(before, processes(random, 2.0 * shift, spread=spread), floor=0.03)
        return judge_slower(changes, 0.03, ALPHA)

    assert [decision(1.0), decision(0.8), decision(1.1), decision(1.03)] == [
        *("pass", "pass", "fail", "inconclusive")
    ]


def test_what_cannot_be_compared() -> None:
    random = np.random.default_rng(37)
    good = processes(random)
    drifting = [one * np.linspace(1.0, 1.1, one.size) for one in good]
    assert unfit_to_compare(good, processes(random)) == []
    assert unfit_to_compare(good[:1], good) == ["A: one process does not tell how processes differ"]
    assert unfit_to_compare(good, [one[:1] for one in good]) == ["B: a process with fewer than 2 runs"]
    assert any(reason.startswith("B: drift") for reason in unfit_to_compare(good, drifting))
    with pytest.raises(ValueError, match=f"needs {LEAST_PROCESSES} processes"):
        change_of(good[:1], good)


def test_a_tail_that_few_runs_show_is_no_evidence() -> None:
    """100 runs are twice as slow, and their p99 could still be chance: 0.99^100 is 37 %."""
    random = np.random.default_rng(53)
    p50, _, p99 = change_of(processes(random, runs=20), processes(random, 4.0, runs=20))
    assert p50.p_slower < 1e-6
    assert p99.p_slower == pytest.approx(2 * 0.99**100)


def test_the_floor_counts_for_processes_too() -> None:
    """Runs of a process hardly vary, so that processes decide: 3 % is above 0, less clearly above 1 %."""
    offsets = np.array([-0.01, -0.005, 0.0, 0.005, 0.01])
    before, after = (
        [median * (1 + offset) * np.linspace(1.0, 1.0001, 200) for offset in offsets]
        for median in (2.0, 2.06)
    )
    (plain,) = change_of(before, after, [0.5], floor=0.0)
    (beyond,) = change_of(before, after, [0.5], floor=NOISE_FLOOR)
    assert order_p(*(np.sort(np.concatenate(side)) for side in (before, after)), 0.5, 1.01) < 1e-9
    assert 1e-4 < plain.p_slower < ALPHA
    assert beyond.p_slower > 2 * plain.p_slower


def test_every_quantile_has_to_pass() -> None:
    within = Change(0.5, 2.0, 2.0, -0.01, 0.01, 1.0, 1.0)
    unknown = Change(0.99, 2.0, 2.02, -0.05, 0.06, 0.4, 1.0)
    assert judge_slower([within], 0.03, ALPHA) == "pass"
    assert judge_slower([within, unknown], 0.03, ALPHA) == "inconclusive"
    slower = Change(0.99, 2.0, 2.2, 0.05, 0.15, 0.02, 1.0)
    assert judge_slower([within, slower], 0.03, ALPHA) == "fail"
    assert judge_slower([within, unknown, slower], 0.03, ALPHA) == "inconclusive"  # 3 x 0.02 is above 5 %
