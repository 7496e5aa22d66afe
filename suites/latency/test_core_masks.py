"""LAT-03: several cores are not slower than one."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import rknn_core_mask
from pytest_rknpu.inventory.budgets import one_core
from pytest_rknpu.measure import Rule, judge_ratio
from pytest_rknpu.session import LoadedModel, Program, ZeroCopy
from pytest_rknpu.session.latency import Latency, record_comparison, require_within
from pytest_rknpu.session.timing import WARM_UP, compare_calls, open_context, timing_inputs

PROCESSES = 3
SLOWER = 0.10
"""Relative. The shipped models are small: what it costs to hand a layer to several cores shows there, and
several cores are said to be slower only where it is more than that."""


@pytest.mark.requirement("LAT-03")
@pytest.mark.needs("time", "several_cores", "core_masks")
def test_several_cores_are_not_slower_than_one(latency: Latency, probe: LoadedModel, blocks: int) -> None:
    """Every core mask of the SoC, interleaved at random; the median of the ratios to one core decides."""
    npu = latency.npu
    masks = npu.core_masks
    data = timing_inputs(npu, probe)

    def record(order: bytes) -> Program:
        program = Program()
        for mask in masks:
            open_context(program, ZeroCopy(mask, probe), mask, data)
        program.time_runs(masks, "timed", order=order, warm_up=WARM_UP)
        return program

    comparison = compare_calls(npu, masks, record, blocks=blocks, processes=PROCESSES)
    rule = Rule()
    record_comparison(latency, comparison, rule)
    disturbed = latency.disturbances(comparison.readings)
    alone = str(one_core(npu.soc))
    several = [mask for mask in masks if int(rknn_core_mask[mask]).bit_count() > 1]
    judgements = {
        f"{mask} by {alone}": judge_ratio(
            comparison.ratios(mask, alone), 1 + SLOWER, rule, comparisons=len(several), disturbances=disturbed
        )
        for mask in several
    }
    require_within(npu, f"{probe.name} on several cores", judgements)
