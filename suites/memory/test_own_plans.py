"""MEM-12 for the models of boards.toml: the compiler's memory plan (docs/user-models.md)."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.session import UserModels
from pytest_rknpu.session.own_builds import own_build
from pytest_rknpu.toolchain.fused_graph import read_fused_graph
from pytest_rknpu.toolchain.memory_plan import check_plan

#: With more tensors than this of unknown producer the live ranges are guesses.
UNKNOWN_SHARE = 0.5


@pytest.mark.requirement("MEM-12")
@pytest.mark.models
def test_no_two_live_tensors_share_memory(
    board: LiveBoard, user_models: UserModels, record: ItemRecord, model_name: str
) -> None:
    """Live ranges against placement, from the build log and the graph that the compiler was given."""
    model = user_models.get(model_name)
    assert model is not None  # this test is for models of boards.toml alone
    build = own_build(board.board, model)
    check = check_plan(build.plan, read_fused_graph(build.fused_onnx) if build.fused_onnx else None)
    record.measure("tensors", len(check.tensors))
    record.measure("tensors of unknown producer", len(check.unknown))
    record.measure("internal memory", build.plan.internal_total.bytes, "B")
    record.measure("weight memory", build.plan.weight_total.bytes, "B")
    record.measure("model file", build.size, "B")
    if check.findings:
        raise ConformanceFailure(f"{model_name} on {board.board.soc}: {'; '.join(check.findings)}")
    if not check.tensors or len(check.unknown) > UNKNOWN_SHARE * len(check.tensors):
        raise Inconclusive(
            f"{model_name}: the producers of {len(check.unknown)} of {len(check.tensors)} tensors are unknown"
        )
