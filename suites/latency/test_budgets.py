"""LAT-01, LAT-02: quantiles, first inference and rknn_init within the budgets of boards.toml."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.fixtures import Effort
from pytest_rknpu.inventory.budget_table import DEFAULT_ALPHA, DEFAULT_PROCESSES, DEFAULT_SAMPLES
from pytest_rknpu.measure import Limit, Rule, judge, quantile_name, smallest_useful_count
from pytest_rknpu.session.latency import Latency, record_timing, require_within
from pytest_rknpu.session.timing import time_model

pytestmark = pytest.mark.needs("time")

STARTS = 10
"""Fresh processes whose start is timed: with ten, one may be slow and the median still be decided."""


@pytest.mark.requirement("LAT-01")
def test_runs_stay_within_their_budget(
    latency: Latency, timed: tuple[str, str | None], effort: Effort
) -> None:
    """p50, p95 and p99 by exact binomial tails; the number of runs is fixed beforehand (docs/latency.md)."""
    name, core_mask = timed
    budget = latency.budget(name, core_mask)
    timing = time_model(
        latency.npu,
        latency.npu.model(name),
        core_mask,
        samples=budget.samples if budget else effort.rounds(DEFAULT_SAMPLES),
        processes=budget.processes if budget else DEFAULT_PROCESSES,
    )
    rule = Rule(budget.alpha if budget else DEFAULT_ALPHA)
    record_timing(latency, timing, rule.alpha)
    if budget is None or not budget.quantiles:
        pytest.skip(_not_judged(latency, name, core_mask, "p50_ms, p95_ms or p99_ms"))
    limits = [Limit(quantile, value) for quantile, value in budget.quantiles.items()]
    for limit in limits:
        latency.npu.record.measure(f"budget {quantile_name(limit.quantile)}", limit.at_most, "ms")
    judgement = judge(timing.milliseconds(), limits, rule, latency.disturbances(timing.readings))
    require_within(latency.npu, f"{name} on {core_mask or 'its only core'}", {name: judgement})


@pytest.mark.requirement("LAT-02")
def test_the_start_stays_within_its_budget(latency: Latency, timed: tuple[str, str | None]) -> None:
    """rknn_init and the first run of a fresh process, each by the median of fresh processes."""
    name, core_mask = timed
    budget = latency.budget(name, core_mask)
    budgets = {"rknn_init": budget.init_ms, "first inference": budget.first_inference_ms} if budget else {}
    given = {what: value for what, value in budgets.items() if value is not None}
    rule = Rule(budget.alpha if budget else DEFAULT_ALPHA)
    starts = max(STARTS, smallest_useful_count(0.5, rule.alpha, rule.alpha / max(1, len(given))))
    model = latency.npu.model(name)
    timing = time_model(latency.npu, model, core_mask, samples=starts, processes=starts, warm_up=0)
    samples = {
        "rknn_init": np.array([process.init_ns for process in timing.processes]) / 1e6,
        "first inference": np.array([process.first_ns for process in timing.processes]) / 1e6,
    }
    latency.npu.record.measure("model", name)
    latency.npu.record.measure("core mask", core_mask or "none")
    latency.npu.record.measure("processes", starts)
    for what, values in samples.items():
        latency.npu.record.measure(f"{what}, median", np.median(values), "ms")
        latency.npu.record.measure(f"{what}, slowest", values.max(), "ms")
        latency.npu.record.keep_samples(what, np.rint(values * 1e6).astype(int)[:, np.newaxis].tolist(), "ns")
    latency.note_conditions(timing.readings)
    if not given:
        pytest.skip(_not_judged(latency, name, core_mask, "init_ms or first_inference_ms"))
    disturbed = latency.disturbances(timing.readings)
    judgements = {
        what: judge([samples[what]], [Limit(0.5, value)], rule, disturbed, comparisons=len(given))
        for what, value in given.items()
    }
    require_within(latency.npu, f"start of {name}", judgements)


def _not_judged(latency: Latency, name: str, core_mask: str | None, keys: str) -> str:
    board = latency.npu.session.board
    mask = f" under {core_mask}" if core_mask else ""
    return (
        f"measured, not judged: no [[budget]] of boards.toml gives {keys} for {name} on {board.name} "
        f"({board.soc}){mask}"
    )
