"""MEM-01: what RKNN_QUERY_MEM_SIZE reports is within the budgets of boards.toml."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.inventory.budget_table import Budget
from pytest_rknpu.session import Npu


@pytest.mark.requirement("MEM-01")
@pytest.mark.models("digits_cnn", "probe_wide")
def test_memory_stays_within_its_budget(npu: Npu, budgets: tuple[Budget, ...], model_name: str) -> None:
    """Weight, internal and DMA sizes against those of each [[budget]] for the model: exact, no statistics.

    SRAM is not budgeted: what the query says of it is about the whole system.
    """
    model = npu.model(model_name)
    reported = npu.session.memory_sizes(model.sha256)
    dma = 0 if reported.from_outside else reported.dma  # such a context has not got any yet
    sizes = {"weight_bytes": reported.weight, "internal_bytes": reported.internal, "dma_bytes": dma}
    npu.record.measure("model", model_name)
    for key, size in sizes.items():
        npu.record.measure(key, size, "B")
    limits = [
        (f"{key} of {model_name}", sizes[key], limit)
        for budget in budgets
        if budget.model == model_name
        for key, limit in budget.sizes.items()
    ]
    board = npu.session.board
    broken = [f"{what} is {size}, its budget {limit}" for what, size, limit in limits if size > limit]
    if broken:
        raise ConformanceFailure(f"board {board.name}: {'; '.join(dict.fromkeys(broken))}")
    unknown = [what for what, size, _ in limits if size == 0]
    if unknown:
        raise Inconclusive(f"board {board.name}: the runtime reports 0 as {', '.join(unknown)}")
    if not limits:
        pytest.skip(
            f"measured, not judged: no [[budget]] of boards.toml gives weight_bytes, internal_bytes or "
            f"dma_bytes for {model_name} on {board.name} ({board.soc})"
        )
