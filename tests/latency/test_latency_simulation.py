"""How often verdicts are wrong, and whether they see a shift of 3 %: simulated, seeded.

The same on larger numbers, as docs/latency.md has them: benchmarks/latency_rates.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from pytest_rknpu.measure import Limit, Rule, chances, decide, instabilities, judge, judge_limit
from pytest_rknpu.measure.quantiles import fail_tail, least_above_to_fail, most_above_to_pass, pass_tail

Doubles = NDArray[np.float64]
ALPHA = 0.05
SPREAD = 0.02
QUANTILES = (0.5, 0.95, 0.99)


def by_chance(rate: float, draws: int) -> float:
    """What a rate of ``rate`` may show in that many draws: three standard deviations more."""
    return rate + 3 * math.sqrt(rate * (1 - rate) / draws)


@pytest.mark.parametrize("count", [299, 1000, 5000])
@pytest.mark.parametrize("quantile", QUANTILES)
def test_independent_runs_on_the_budget(count: int, quantile: float) -> None:
    """With the true quantile as the budget, verdicts are wrong as often as the tails say: at most alpha."""
    draws = 100_000
    above = np.random.default_rng(count).binomial(count, 1 - quantile, draws)
    few, many = most_above_to_pass(count, quantile, ALPHA), least_above_to_fail(count, quantile, ALPHA)
    for rate, tail in (
        (float((above <= few).mean()), pass_tail(count, few, quantile)),
        (float((above >= many).mean()), fail_tail(count, many, quantile)),
    ):
        assert tail <= ALPHA
        assert rate == pytest.approx(tail, abs=by_chance(tail, draws) - tail)


def processes(random: np.random.Generator, correlation: float, shift: float = 1.0) -> list[Doubles]:
    """5 processes of 200 runs: log-normal with median ``shift``, an AR(1) process in the logarithm."""
    noise = random.standard_normal((5, 200))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0]
    for run in range(1, 200):
        values[:, run] = correlation * values[:, run - 1] + math.sqrt(1 - correlation**2) * noise[:, run]
    return list(shift * np.exp(SPREAD * values))


def budget_of(quantile: float) -> float:
    return math.exp(SPREAD * float(norm.ppf(quantile)))


Make = Callable[[np.random.Generator], list[Doubles]]


def differing(random: np.random.Generator) -> list[Doubles]:
    """Processes whose medians differ by a fifth of the spread of their runs: nobody sees it in a plot."""
    own = 0.2 * random.standard_normal((5, 1))
    return list(np.exp(0.003 * (random.standard_normal((5, 200)) + own) / math.sqrt(1.04)))


def swaying(random: np.random.Generator) -> list[Doubles]:
    """A slow swing is 9 % of the variance: too little for the correlation from run to run."""
    slow = np.stack([np.log(one) / SPREAD for one in processes(random, 0.98)])
    return list(np.exp(0.003 * (0.3 * slow + math.sqrt(0.91) * random.standard_normal((5, 200)))))


def in_two_pairs(random: np.random.Generator) -> list[Doubles]:
    """Every other run depends on the last but one: no correlation of neighbours at all."""
    lanes = [np.stack([np.log(one) / SPREAD for one in processes(random, 0.6)]) for _ in "ab"]
    return list(np.exp(0.003 * np.stack(lanes, axis=2).reshape(5, -1)[:, :200]))


@pytest.mark.parametrize("make", [differing, swaying, in_two_pairs])
def test_runs_that_are_alike_within_a_process_mislead_nobody(make: Make) -> None:
    """On the budget of p50, where a binomial alone would be wrong in a quarter to a half of the sets."""
    sets = 150
    random = np.random.default_rng(13)
    budget = [Limit(0.5, 1.0)]
    found, alone = [], []
    for _ in range(sets):
        runs = make(random)
        found.append(judge(runs, budget, Rule(ALPHA)).decision)
        above = int((np.concatenate(runs) > 1.0).sum())
        alone.append(decide(1000, above, 0.5, ALPHA))
    assert (sets - alone.count("inconclusive")) / sets > 4 * ALPHA
    for wrong in ("pass", "fail"):
        assert found.count(wrong) / sets <= by_chance(ALPHA, sets)


def test_a_tail_that_few_processes_have_is_not_passed_easily() -> None:
    """On the budget of p95, of processes that differ by three tenths of the spread of their runs."""
    sets = 200
    random = np.random.default_rng(19)
    spread = 0.003
    budget = Limit(0.95, math.exp(spread * float(norm.ppf(0.95))))
    found, alone = [], []
    for _ in range(sets):
        own = 0.3 * random.standard_normal((5, 1))
        runs = list(np.exp(spread * (random.standard_normal((5, 200)) + own) / math.sqrt(1.09)))
        verdict = judge_limit(runs, budget, ALPHA, ALPHA)
        found.append(verdict.decision)
        alone.append(decide(1000, verdict.above, 0.95, ALPHA))
    assert alone.count("pass") / sets > 3 * ALPHA
    assert found.count("pass") / sets <= by_chance(ALPHA, sets)


def test_many_short_processes_are_sound() -> None:
    """A thousand runs of as many processes as boards.toml allows."""
    random = np.random.default_rng(17)
    sound = [list(np.exp(SPREAD * random.standard_normal((100, 10)))) for _ in range(60)]
    assert sum(bool(instabilities(runs)) for runs in sound) <= 3


def wrong_and_refused(correlation: float, sets: int) -> tuple[dict[float, float], dict[float, float], float]:
    """Rates of wrong verdicts per quantile, without and with the checks, and of refused sets."""
    random = np.random.default_rng([7, int(100 * correlation)])
    unchecked, checked = dict.fromkeys(QUANTILES, 0.0), dict.fromkeys(QUANTILES, 0.0)
    refused = 0
    for _ in range(sets):
        runs = processes(random, correlation)
        unfit = bool(instabilities(runs, QUANTILES))
        refused += unfit
        pooled = np.concatenate(runs)
        for quantile in QUANTILES:
            above = int((pooled > budget_of(quantile)).sum())
            wrong = decide(1000, above, quantile, ALPHA) != "inconclusive"
            unchecked[quantile] += wrong / sets
            checked[quantile] += (wrong and not unfit) / sets
    return unchecked, checked, refused / sets


@pytest.mark.parametrize("correlation", [0.0, 0.1])
def test_weak_correlation_moves_no_rate(correlation: float) -> None:
    """Wrong passes and wrong fails together, which may be twice alpha."""
    sets = 150
    _, checked, refused = wrong_and_refused(correlation, sets)
    for rate in checked.values():
        assert rate <= by_chance(2 * ALPHA, sets)
    assert (refused <= 0.05) == (correlation == 0.0)


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_strong_correlation_would_mislead_and_is_refused(correlation: float) -> None:
    unchecked, checked, refused = wrong_and_refused(correlation, 150)
    assert unchecked[0.5] > 2 * ALPHA
    assert refused > 0.98
    assert max(checked.values()) <= 0.02


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize(("shift", "expected"), [(1.03, "fail"), (0.97, "pass")])
def test_a_shift_of_three_percent_is_seen(quantile: float, shift: float, expected: str) -> None:
    """Runs that spread by 2 %; the budget is what they were before. The chance is known exactly."""
    exceedance = float(norm.sf(float(norm.ppf(quantile)) - math.log(shift) / SPREAD))
    passes, fails = chances(1000, quantile, exceedance, ALPHA)
    chance = passes if expected == "pass" else fails
    assert chance > 0.95
    random = np.random.default_rng(3)
    limit = [Limit(quantile, budget_of(quantile))]
    seen = [judge(processes(random, 0.0, shift), limit, Rule(ALPHA)).decision for _ in range(60)]
    assert seen.count(expected) >= 54
    assert {"pass": "fail", "fail": "pass"}[expected] not in seen


def test_looking_five_times_needs_a_fifth_of_alpha() -> None:
    """Deciding at 200, 400, ... 1,000 runs with the whole alpha each time is wrong far more often."""
    draws = 20_000
    above = np.random.default_rng(9).binomial(200, 0.05, (draws, 5)).cumsum(axis=1)
    counts = (200, 400, 600, 800, 1000)

    def ever_passed(alpha: float) -> float:
        few = [most_above_to_pass(count, 0.95, alpha) for count in counts]
        return float((above <= few).any(axis=1).mean())

    assert ever_passed(ALPHA) > 1.8 * ALPHA
    assert ever_passed(Rule(ALPHA, looks=5).per_look) <= by_chance(ALPHA, draws)
