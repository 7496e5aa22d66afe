"""Several quantiles, disturbances and comparisons become one verdict."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConfigurationError, ConformanceFailure, Inconclusive
from pytest_rknpu.measure import (
    Limit,
    Rule,
    judge,
    judge_limit,
    judge_ratio,
    quantile_figures,
    require_enough_for,
)
from pytest_rknpu.session.latency import require_within

RANDOM = np.random.default_rng(11)
ALL = np.sort(10.0 * np.exp(0.02 * RANDOM.standard_normal(1000)))
PROCESSES = [RANDOM.permutation(ALL[start::5]) for start in range(5)]  # dealt out: they have the same tails


def limits(p50: float, p95: float, p99: float) -> list[Limit]:
    return [Limit(0.5, p50), Limit(0.95, p95), Limit(0.99, p99)]


@pytest.mark.parametrize(
    ("budgets", "decisions", "overall"),
    [
        ((11.0, 11.5, 12.0), ["pass", "pass", "pass"], "pass"),
        ((11.0, 11.5, ALL[-10]), ["pass", "pass", "inconclusive"], "inconclusive"),
        ((9.5, 11.5, 12.0), ["fail", "pass", "pass"], "fail"),
        ((9.5, 11.5, ALL[-10]), ["fail", "pass", "inconclusive"], "fail"),
    ],
)
def test_the_overall_verdict(budgets: tuple[float, ...], decisions: list[str], overall: str) -> None:
    found = judge(PROCESSES, limits(*budgets), Rule())
    assert [verdict.decision for verdict in found.limits] == decisions
    assert found.decision == overall
    assert found.reasons == ()


def test_failing_shares_alpha_among_quantiles() -> None:
    """17 of 1,000 above p99: a fail by itself (tail 2.6 %), but not as one of three chances (1.7 %)."""
    budget = float(ALL[-18])
    assert judge(PROCESSES, [Limit(0.99, budget)], Rule()).decision == "fail"
    assert judge(PROCESSES, limits(11.0, 11.5, budget), Rule()).decision == "inconclusive"
    assert judge(PROCESSES, [Limit(0.99, budget)], Rule(looks=3)).decision == "inconclusive"
    assert judge(PROCESSES, [Limit(0.99, budget)], Rule(), comparisons=3).decision == "inconclusive"


def test_passing_does_not_share_alpha() -> None:
    budget = float(ALL[-5])  # four are above: the most with which p99 passes
    assert judge(PROCESSES, limits(11.0, 11.5, budget), Rule()).decision == "pass"


@pytest.mark.parametrize("budget", [5.0, 20.0])
def test_what_cannot_be_judged_is_neither_pass_nor_fail(budget: float) -> None:
    found = judge(PROCESSES, [Limit(0.5, budget)], Rule(), ["throttled: cooling device x is at 1 of 5"])
    assert found.decision == "inconclusive"
    assert found.lines()[-1] == "cannot be judged: throttled: cooling device x is at 1 of 5"
    drifting = [samples * np.linspace(1, 1.05, 200) for samples in PROCESSES]
    found = judge(drifting, [Limit(0.5, budget)], Rule())
    assert found.decision == "inconclusive"
    assert any(reason.startswith("drift") for reason in found.reasons)


def test_processes_that_disagree_decide_nothing() -> None:
    """455 of 1,000 runs are above the median's budget, which passes; but three processes had them all."""
    below, above = np.linspace(9.99, 9.999, 200), np.linspace(10.001, 10.01, 200)
    runs = [np.concatenate([below[:number], above[number:]]) for number in (200, 200, 70, 50, 25)]
    found = judge_limit(runs, Limit(0.5, 10.0), 0.05, 0.05)
    assert (found.above, found.decision) == (455, "inconclusive")
    assert found.pass_tail < 0.05
    assert found.sentence("ms").endswith(
        "; but the processes differ too much to say so: 0, 0, 130, 150, 175 runs of each (tail 0.41)"
    )
    turned = judge_limit([20.0 - one for one in runs], Limit(0.5, 10.0), 0.05, 0.05)
    assert (turned.above, turned.decision, turned.fail_tail < 0.05) == (545, "inconclusive", True)
    alike = [np.concatenate([below[:109], above[109:]])] * 5
    assert judge_limit(alike, Limit(0.5, 10.0), 0.05, 0.05).decision == "pass"


def test_one_process_is_judged_by_its_runs_alone() -> None:
    """Starts of LAT-02: each is a process of its own."""
    assert judge_limit([np.linspace(9.0, 9.9, 10)], Limit(0.5, 10.0), 0.05, 0.05).decision == "pass"


def test_too_few_samples_are_refused_with_the_number_needed() -> None:
    with pytest.raises(ConfigurationError, match=r"298 samples cannot decide p99.*at least 299"):
        judge([ALL[:298]], [Limit(0.99, 20.0)], Rule())
    with pytest.raises(ConfigurationError, match="no budget"):
        judge(PROCESSES, [], Rule())
    require_enough_for(299, [0.5, 0.99], Rule())
    with pytest.raises(ConfigurationError, match="5 samples cannot decide p50"):
        require_enough_for(5, [0.5, 0.95], Rule())


def test_a_sentence_has_all_figures() -> None:
    (verdict,) = judge(PROCESSES, [Limit(0.95, 11.0)], Rule()).limits
    assert verdict.sentence("ms").startswith("p95 <= 11 ms: pass, ")
    assert "of 1000 are above it, 50 may be (tails: pass" in verdict.sentence("ms")


def test_figures_come_with_bounds() -> None:
    found = quantile_figures(PROCESSES, 0.5, 0.05)
    assert (found.bounds.lower, found.value, found.bounds.upper) == (ALL[473], ALL[499], ALL[526])


def test_a_ratio_is_judged_by_its_median() -> None:
    random = np.random.default_rng(1)

    def ratios(level: float) -> list[np.ndarray]:
        return [level * np.exp(0.1 * random.standard_normal(100)) for _ in range(3)]

    assert judge_ratio(ratios(1.0), 1.1, Rule()).decision == "pass"
    assert judge_ratio(ratios(1.2), 1.1, Rule()).decision == "fail"
    assert judge_ratio(ratios(1.1), 1.1, Rule()).decision == "inconclusive"
    assert judge_ratio(ratios(1.0), 1.1, Rule(), disturbances=["hot"]).decision == "inconclusive"
    with pytest.raises(ConfigurationError, match="at least 6"):
        judge_ratio([np.ones(5)], 1.1, Rule(), comparisons=3)


class Stand:
    """What ``require_within`` needs of an NPU."""

    class session:
        class board:
            name = "desk"

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.record = self

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_judgements_become_outcomes() -> None:
    good = judge(PROCESSES, [Limit(0.5, 20.0)], Rule())
    bad = judge(PROCESSES, [Limit(0.5, 5.0)], Rule())
    unfit = judge(PROCESSES, [Limit(0.5, 5.0)], Rule(), ["hot"])
    stand = Stand()
    require_within(stand, "a model", {"run": good})
    assert stand.notes == [f"run: {good.limits[0].sentence('ms')}"]
    with pytest.raises(ConformanceFailure, match=r"board desk: a model\nrun: p50 <= 5 ms: fail"):
        require_within(stand, "a model", {"run": bad, "other": unfit})
    with pytest.raises(Inconclusive, match="other: cannot be judged: hot"):
        require_within(stand, "a model", {"run": good, "other": unfit})
