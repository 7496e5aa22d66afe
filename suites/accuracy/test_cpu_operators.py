"""ACC-06: operators that fell to the CPU, from the toolkit's build log."""

from __future__ import annotations

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import BuildOf, ItemRecord, LiveBoard
from pytest_rknpu.models.cpu_operators import declared_for
from pytest_rknpu.session import UserModels
from pytest_rknpu.toolchain.cpu_operators import cpu_operators, undeclared


@pytest.mark.requirement("ACC-06")
@pytest.mark.models(*models.names())
def test_no_undeclared_operator_runs_on_the_cpu(
    board: LiveBoard, build: BuildOf, user_models: UserModels, record: ItemRecord, model_name: str
) -> None:
    """Counted and named; more than the model declares is a fail. Of a user's model the number is declared."""
    platform, user = board.board.platform, user_models.get(model_name)
    beyond: list[str] = []
    for plan in build(model_name).log.plans:
        found = cpu_operators(plan)
        record.measure("operators on the CPU", len(found))
        record.measure("operators", len(plan.layers))
        if found:
            record.note("on the CPU: " + ", ".join(f"{layer.op_type} ({layer.name})" for layer in found))
        if user is None:
            beyond += undeclared(found, declared_for(model_name, platform))
        elif user.table.cpu_operators is not None and len(found) > user.table.cpu_operators:
            beyond += undeclared(found, ())
    if beyond:
        declared = ", ".join(declared_for(model_name, platform)) if user is None else user.table.cpu_operators
        raise ConformanceFailure(
            f"{model_name} for {platform}: {'; '.join(beyond)}; declared: {declared or 'none'}"
        )
