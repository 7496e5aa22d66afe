"""MEM-01: what the runtime reports of a model, beside the build log of the very file that it loaded."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure, HarnessError
from pytest_rknpu.fixtures import BuildOf, ItemRecord
from pytest_rknpu.session import Npu
from pytest_rknpu.toolchain.memory_sizes import disagreements, internal_range, weight_range

MODELS = ["probe_pointwise", "probe_chain", "probe_wide", "probe_stride", "digits_cnn"]


@pytest.mark.requirement("MEM-01")
@pytest.mark.models(*MODELS)
def test_reported_sizes_agree_with_the_build_log(
    npu: Npu, build: BuildOf, record: ItemRecord, model_name: str
) -> None:
    """RKNN_QUERY_MEM_SIZE: weights and internal memory lie within what the compiler's tables say."""
    built, platform = build(model_name), npu.session.board.platform
    if built.own is not None and platform in built.own.table.rknn:
        pytest.skip(f"{model_name}: the ready .rknn file for {platform} has no build log")
    loaded = npu.model(model_name)
    if loaded.sha256 != built.compiled.sha256:
        raise HarnessError(f"{model_name}: the board did not load the file that the build log is of")
    plan, sizes = built.log.plan, loaded.description
    for size, value, (lowest, highest) in (
        ("weight", sizes.weight_size, weight_range(plan)),
        ("internal", sizes.internal_size, internal_range(plan)),
    ):
        record.measure(f"{size} size reported", value, "B")
        record.measure(f"{size} size by the log, at least", lowest, "B")
        record.measure(f"{size} size by the log, at most", highest, "B")
    problems = disagreements(sizes.weight_size, sizes.internal_size, plan)
    if problems:
        raise ConformanceFailure(f"{model_name}: " + "; ".join(problems))
