"""ACC-06: operators that fell to the CPU, from the toolkit's build log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import BuildOf, ItemRecord, LiveBoard
from pytest_rknpu.models.cpu_operators import declared_for
from pytest_rknpu.toolchain.cpu_operators import cpu_operators, undeclared
from pytest_rknpu.toolchain.log_rows import Layer


@pytest.mark.runtimes("simulator")  # a build log is the host's: it says nothing of a board
@pytest.mark.requirement("ACC-06")
@pytest.mark.models(*models.names())
def test_no_undeclared_operator_runs_on_the_cpu(
    board: LiveBoard, build: BuildOf, record: ItemRecord, model_name: str
) -> None:
    """Counted and named; more than the model declares is a fail."""
    platform, built = board.board.platform, build(model_name)
    plan = built.log.plan
    found = cpu_operators(plan)
    record.measure("operators on the CPU", len(found))
    record.measure("operators", len(plan.layers))
    if found:
        record.note("on the CPU: " + ", ".join(f"{layer.op_type} ({layer.name})" for layer in found))
    if built.own is None:
        require_declared(found, declared_for(model_name, platform), f"{model_name} for {platform}")
    else:
        require_at_most(built.own.table.on(platform).cpu_operators, found, f"{model_name} for {platform}")


def require_declared(found: Sequence[Layer], declared: Sequence[str], what: str) -> None:
    """Of a shipped model it is known which operators may fall."""
    beyond = undeclared(found, declared)
    if beyond:
        raise ConformanceFailure(f"{what}: {'; '.join(beyond)}; declared: {', '.join(declared) or 'none'}")


def require_at_most(allowed: int | None, found: Sequence[Layer], what: str) -> None:
    """The owner of a model says how many may fall."""
    if allowed is None:
        pytest.skip(f"measured, not judged: {what} declares no cpu_operators ({len(found)} fell to the CPU)")
    if len(found) > allowed:
        named = ", ".join(f"{layer.op_type} {layer.name}".rstrip() for layer in found)
        raise ConformanceFailure(
            f"{what}: {len(found)} operators fell to the CPU, declared: at most {allowed}: {named}"
        )
