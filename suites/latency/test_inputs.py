"""LAT-06: the same input again is not much faster than another one."""

from __future__ import annotations

import pytest

from pytest_rknpu.inventory.budgets import one_core
from pytest_rknpu.measure import Rule, judge_ratio
from pytest_rknpu.session import LoadedModel, Program, ZeroCopy
from pytest_rknpu.session.latency import Latency, record_comparison, require_within
from pytest_rknpu.session.timing import WARM_UP, compare_calls, open_context

PROCESSES = 3
VARIETY = 16
FASTER = 0.10
"""Relative: more than that means that a result was cached (catalogue, LAT-06)."""
VARIED, SAME = "varied input", "same input"


@pytest.mark.requirement("LAT-06")
@pytest.mark.needs("time")
def test_no_input_is_faster_the_second_time(latency: Latency, probe: LoadedModel, blocks: int) -> None:
    """Two contexts, interleaved at random: one gets the same bytes before each run, the other always new
    ones.
    """
    npu = latency.npu
    inputs = npu.random_inputs(probe, VARIETY + 1)
    core_mask = one_core(npu.soc)

    def record(order: bytes) -> Program:
        program = Program()
        for context in (VARIED, SAME):
            open_context(program, ZeroCopy(context, probe), core_mask, inputs[:1])
        with program.aside() as before:  # both are written before every run: the CPU's work is the same
            program.write(ZeroCopy(SAME, probe).input, inputs[0])
            program.write_cycle(ZeroCopy(VARIED, probe).input, inputs[1:])
        program.time_runs([VARIED, SAME], "timed", order=order, warm_up=WARM_UP, before=before)
        return program

    comparison = compare_calls(npu, [VARIED, SAME], record, blocks=blocks, processes=PROCESSES)
    record_comparison(latency, comparison, Rule())
    judgement = judge_ratio(
        comparison.ratios(VARIED, SAME),
        1 / (1 - FASTER),
        Rule(),
        disturbances=latency.disturbances(comparison.readings),
    )
    require_within(npu, f"{probe.name}: varied inputs by the same one", {"ratio": judgement})
