"""SPARSE-07 on a clock: sparse inference is not slower than dense inference of the same pruned weights."""

from __future__ import annotations

import pytest

from pytest_rknpu.fixtures import Effort
from pytest_rknpu.inventory.budgets import one_core
from pytest_rknpu.measure import Rule, judge_ratio
from pytest_rknpu.session import Program, ZeroCopy
from pytest_rknpu.session.latency import Latency, record_comparison, require_within
from pytest_rknpu.session.timing import WARM_UP, compare_calls, open_context, timing_inputs

PROCESSES = 3
SLOWER = 0.03
"""Relative: small layers may grow, and what they take longer has to stay within that."""
PRUNED = ("digits_aligned_input", "digits_aligned_output", "digits_aligned_grid")


@pytest.mark.requirement("SPARSE-07")
@pytest.mark.needs("time", "sparse")
@pytest.mark.models(*PRUNED)
def test_sparse_runs_are_not_slower(latency: Latency, effort: Effort, pruned_name: str) -> None:
    """Both builds in one process, interleaved at random; the median of the ratios decides."""
    npu = latency.npu
    models = {
        "sparse": npu.model(pruned_name, sparse_infer=True),
        "dense": npu.model(pruned_name, sparse_infer=False),
    }
    data = timing_inputs(npu, models["dense"])

    def record(order: bytes) -> Program:
        program = Program()
        for context, model in models.items():
            open_context(program, ZeroCopy(context, model), one_core(npu.soc), data)
        program.time_runs(list(models), "timed", order=order, warm_up=WARM_UP)
        return program

    blocks = max(30, effort.rounds(300))
    comparison = compare_calls(npu, list(models), record, blocks=blocks, processes=PROCESSES)
    rule = Rule()
    record_comparison(latency, comparison, rule)
    judgement = judge_ratio(
        comparison.ratios("sparse", "dense"),
        1 + SLOWER,
        rule,
        disturbances=latency.disturbances(comparison.readings),
    )
    require_within(npu, f"{pruned_name}: sparse by dense", {"ratio": judgement})
