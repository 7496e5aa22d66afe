"""SYNC-15: what cache maintenance costs, by direction and size; one direction costs no more than both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pytest_rknpu.fixtures import Effort
from pytest_rknpu.measure import Judgement, Rule, judge_ratio
from pytest_rknpu.session import BIDIRECTIONAL, FROM_DEVICE, TO_DEVICE, LoadedModel, Program
from pytest_rknpu.session.latency import Latency, require_within
from pytest_rknpu.session.timing import Comparison, compare_calls

PROCESSES = 3
MORE = 0.05
"""Relative: both directions cost at least as much as one, but for what measuring costs."""
MODES = {"TO_DEVICE": TO_DEVICE, "FROM_DEVICE": FROM_DEVICE, "BIDIRECTIONAL": BIDIRECTIONAL}
SIZES = {"64 KiB": 2**16, "1 MiB": 2**20, "4 MiB": 2**22}


@pytest.fixture
def sync_model(latency: Latency) -> LoadedModel:
    """Any model will do: a memory needs a context. (`model` of this folder would need `npu` too early.)"""
    return latency.npu.model("probe_pointwise")


@pytest.mark.requirement("SYNC-15")
@pytest.mark.needs("time", "rknn_mem_sync")
def test_one_direction_costs_no_more_than_both(
    latency: Latency, sync_model: LoadedModel, effort: Effort
) -> None:
    """The CPU writes the memory, then it is synced one way or both, interleaved at random; by size."""
    found = {size: _time_directions(latency, sync_model, size, max(30, effort.rounds(100))) for size in SIZES}
    latency.note_conditions([reading for one in found.values() for reading in one.readings])
    require_within(
        latency.npu,
        "cost of rknn_mem_sync",
        {name: judgement for size, one in found.items() for name, judgement in _judged(latency, size, one)},
    )


def _time_directions(latency: Latency, model: LoadedModel, size: str, blocks: int) -> Comparison:
    """Time the three modes on a memory of that size, and write down what they cost."""
    npu, length = latency.npu, SIZES[size]

    def record(order: bytes) -> Program:
        program = Program()
        program.init("a", model.sha256)
        program.create_mem("memory", "a", length)
        with program.aside() as before:  # every line is in the cache, and dirty
            program.fill("memory", 0x5A)
        program.time_syncs("memory", "a", list(MODES.values()), order, "timed", warm_up=5, before=before)
        return program

    comparison = compare_calls(npu, list(MODES), record, blocks=blocks, processes=PROCESSES)
    for name in MODES:
        cost = float(np.median(np.concatenate(comparison.milliseconds(name)))) * 1000
        npu.record.measure(f"{size} {name}, median", cost, "us")
        npu.record.measure(f"{size} {name}, per MiB", cost * 2**20 / length, "us/MiB")
    return comparison


def _judged(latency: Latency, size: str, comparison: Comparison) -> Iterator[tuple[str, Judgement]]:
    """The judgement of each direction by both."""
    one_way = [name for name in MODES if name != "BIDIRECTIONAL"]
    for name in one_way:
        yield (
            f"{size}, {name} by BIDIRECTIONAL",
            judge_ratio(
                comparison.ratios(name, "BIDIRECTIONAL"),
                1 + MORE,
                Rule(),
                comparisons=len(one_way) * len(SIZES),
                disturbances=latency.disturbances(comparison.readings),
            ),
        )
