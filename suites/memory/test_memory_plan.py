"""MEM-12: the compiler's memory plan, from the toolkit's build log. No board is needed, and no runtime."""

from __future__ import annotations

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import BuildOf, ItemRecord, LiveBoard
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.toolchain.memory_map import MEASUREMENT, memory_map
from pytest_rknpu.toolchain.memory_plan import check_plan

#: With more tensors than this of unknown producer the live ranges are guesses.
UNKNOWN_SHARE = 0.5


@pytest.mark.runtimes("simulator")  # a build log is the host's: it says nothing of a board
@pytest.mark.requirement("MEM-12")
@pytest.mark.models(*models.names())
def test_no_two_live_tensors_share_memory(
    build: BuildOf, record: ItemRecord, model_name: str, board: LiveBoard
) -> None:
    """Live ranges against places; work in place and slices of a Concat may share; the end is the total."""
    built = build(model_name)
    if built.graph is None:
        raise Inconclusive(f"{model_name}: the toolkit wrote no graph, so that no tensor's producer is known")
    plan = built.log.plan
    check = check_plan(plan, built.graph, shared_arena=SOCS[board.board.soc].runtime == "librknnmrt")
    record.measure("tensors judged", len(check.tensors))
    record.measure("internal memory", plan.internal_total.bytes, "B")
    record.measure("weight memory", plan.weight_total.bytes, "B")
    record.measure(MEASUREMENT, memory_map(plan, check.tensors))
    if check.unknown:
        record.note(f"judged from before their first reader on, writer unknown: {', '.join(check.unknown)}")
    if check.findings:
        toolkit = built.log.toolkit_version
        raise ConformanceFailure(f"{model_name}, RKNN-Toolkit2 {toolkit}: {'; '.join(check.findings)}")
    if len(check.unknown) > UNKNOWN_SHARE * len(check.tensors):
        raise Inconclusive(
            f"{model_name}: the writers of {len(check.unknown)} of {len(check.tensors)} tensors are unknown"
        )
