"""MEM-01: what RKNN_QUERY_MEM_SIZE reports is within the budgets of boards.toml."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.farm.run import RUN
from pytest_rknpu.session import Npu


@pytest.mark.requirement("MEM-01")
def test_memory_stays_within_its_budget(npu: Npu, request: pytest.FixtureRequest) -> None:
    """Weight and internal sizes against weight_bytes and internal_bytes. Sizes are exact: no statistics."""
    board = npu.session.board
    broken: list[str] = []
    judged = 0
    for budget in request.config.stash[RUN].file.budgets:
        if budget.board != board.name and budget.soc != board.soc:
            continue
        description = npu.model(budget.model).description
        sizes = {"weight_bytes": description.weight_size, "internal_bytes": description.internal_size}
        for key, size in sizes.items():
            limit = getattr(budget, key)
            if limit is None:
                continue
            judged += 1
            name = f"{budget.model} {budget.core_mask or ''} {key}".replace("  ", " ")
            npu.record.measure(f"{name} ({budget.board or budget.soc})", size, "B")
            if size > limit:
                broken.append(f"{name} is {size}, its budget {limit}")
    if not judged:
        pytest.skip(
            f"no [[budget]] of boards.toml has weight_bytes or internal_bytes for {board.name} ({board.soc})"
        )
    if broken:
        raise ConformanceFailure(f"board {board.name}: {'; '.join(broken)}")
