"""ACC-06: operators that fell to the CPU, from the toolkit's build log."""

from __future__ import annotations

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import BuildOf, ItemRecord, LiveBoard
from pytest_rknpu.models.cpu_operators import declared_for
from pytest_rknpu.toolchain.cpu_operators import cpu_operators, undeclared


@pytest.mark.requirement("ACC-06")
@pytest.mark.parametrize("model_name", models.names())
def test_no_undeclared_operator_runs_on_the_cpu(
    board: LiveBoard, build: BuildOf, record: ItemRecord, model_name: str
) -> None:
    """Counted and named; more than the model declares is a fail."""
    platform, plan = board.board.platform, build(model_name).log.plan
    found, declared = cpu_operators(plan), declared_for(model_name, platform)
    record.measure("operators on the CPU", len(found))
    record.measure("operators", len(plan.layers))
    if found:
        record.note("on the CPU: " + ", ".join(f"{layer.op_type} ({layer.name})" for layer in found))
    beyond = undeclared(found, declared)
    if beyond:
        raise ConformanceFailure(
            f"{model_name} for {platform}: {'; '.join(beyond)}; declared: {', '.join(declared) or 'none'}"
        )
