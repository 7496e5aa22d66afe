"""SPARSE-03: sparse inference is refused where the SoC has none (guide 4.1.7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, ToolkitError, Waived
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.sparsity.engagement import IGNORES_SPARSE_INFER
from pytest_rknpu.toolchain import Plan

# A build log is the host's: it says nothing of a board, and an emulated board builds nothing.
pytestmark = pytest.mark.runtimes("simulator")


@pytest.mark.requirement("SPARSE-03")
def test_sparse_inference_is_refused_where_there_is_none(
    board: LiveBoard, plan_of: Callable[..., Plan], toolkit: str, record: ItemRecord
) -> None:
    """The toolkit says so, in words that name the SoC and the option, before it builds anything."""
    soc = board.session.soc
    if soc.sparse:
        pytest.skip(f"{soc.name} has sparse inference (guide 4.1.7): there is nothing to refuse")
    model = models.load("probe_pointwise")
    try:
        plan_of(model.float_onnx, model.calibration)
    except ToolkitError as error:
        require_clear(str(error), soc.toolkit_platform)
        record.note(str(error))
        return
    accepted = f"RKNN-Toolkit2 {toolkit} builds with sparse_infer=True for {soc.name}, which has none"
    if (toolkit, soc.name) in IGNORES_SPARSE_INFER:
        raise Waived(f"{accepted}. Known: it ignores the option there")
    raise ConformanceFailure(accepted)


def require_clear(message: str, platform: str) -> None:
    """A refusal has to be one of sparse inference, and not whatever else went wrong."""
    wanted = (f"{platform} does not support sparse inference", "failed in config")
    missing = [words for words in wanted if words not in message]
    if missing:
        raise ConformanceFailure(f"the refusal does not say {missing}: {message}")
