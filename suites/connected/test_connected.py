"""Boards that RKNN-Toolkit2 drives from this host (docs/user-models.md): versions, memory, time, operators.

ACC-01 and ACC-02 run on them too (suites/accuracy). Tests of the C API cannot: there is no agent on such a
board.
"""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort, ItemRecord
from pytest_rknpu.inventory.budget_table import Budget
from pytest_rknpu.inventory.budgets import find_budget, one_core
from pytest_rknpu.models import Model
from pytest_rknpu.session import ConnectedSession, UserModel, UserModels
from pytest_rknpu.session.versions import is_value

INDISPENSABLE = ("runtime", "rknn_server")
EVALUATIONS = 30


@pytest.fixture
def model(user_models: UserModels, model_name: str) -> Model | UserModel:
    """A shipped model, or one of boards.toml."""
    return user_models.get(model_name) or models.load(model_name)


@pytest.mark.requirement("VER-01")
def test_versions_are_recorded(connected: ConnectedSession, record: ItemRecord) -> None:
    """What get_sdk_version says; BSP, kernel and clocks of such a board nobody can look at."""
    missing = [name for name, version in connected.versions.items() if not version]
    if missing:
        raise ConformanceFailure(
            f"board {connected.board.name}: nothing is recorded for {', '.join(missing)}"
        )
    unknown = {n: connected.versions[n] for n in INDISPENSABLE if not is_value(connected.versions[n])}
    if unknown:
        raise Inconclusive(f"board {connected.board.name}: a verdict cannot be tied to versions: {unknown}")


@pytest.mark.requirement("MEM-01")
@pytest.mark.models("digits_cnn")
def test_memory_agrees_with_the_build_log(
    connected: ConnectedSession, record: ItemRecord, model: Model | UserModel
) -> None:
    """eval_memory on the board against the compiler's totals: weights and internal tensors."""
    plan, used = connected.plan(model), connected.memory(model)
    totals = {"weight": plan.weight_total, "internal": plan.internal_total}
    broken = []
    for what, total in totals.items():
        found = getattr(used, what)
        record.measure(f"{what} memory on the board", found, "B")
        record.measure(f"{what} memory in the build log", total.bytes, "B")
        if abs(found - total.bytes) > used.resolution + total.rounding:
            broken.append(f"{what} memory is {found} bytes on the board, {total.bytes} in the build log")
    record.measure("memory on the board", used.total, "B")
    record.measure("rounding of eval_memory", used.resolution, "B")
    if broken:
        raise ConformanceFailure(f"board {connected.board.name}: {'; '.join(broken)}")


@pytest.mark.requirement("MEM-01")
@pytest.mark.models("digits_cnn")
def test_memory_stays_within_its_budget(
    connected: ConnectedSession,
    budgets: tuple[Budget, ...],
    record: ItemRecord,
    model: Model | UserModel,
) -> None:
    """eval_memory against weight_bytes and internal_bytes of the [[budget]] for the board's SoC."""
    board = connected.board
    budget = find_budget(budgets, model.name, one_core(board.chip))
    limits = {"weight": budget.weight_bytes, "internal": budget.internal_bytes} if budget else {}
    given = {what: limit for what, limit in limits.items() if limit is not None}
    if not given:
        pytest.skip(f"no [[budget]] gives weight_bytes or internal_bytes for {model.name} on {board.soc}")
    used, broken = connected.memory(model), []
    for what, limit in given.items():
        size = getattr(used, what)
        record.measure(f"{what} memory", size, "B")
        if size - used.resolution > limit:
            broken.append(f"{what} memory is {size}, its budget {limit}")
    if broken:
        raise ConformanceFailure(f"board {board.name}: {model.name}: {'; '.join(broken)}")


@pytest.mark.requirement("LAT-01")
@pytest.mark.models("digits_cnn")
def test_time_of_a_frame_is_measured(
    connected: ConnectedSession, effort: Effort, record: ItemRecord, model: Model | UserModel
) -> None:
    """eval_perf, many times on one connection. Each figure is a mean over frames that the toolkit counts
    itself, so that no quantile can be judged by it: measured, not judged."""
    reports = connected.performance(model, count=effort.rounds(EVALUATIONS))
    times = np.array([report.total_us for report in reports]) / 1000
    record.measure("evaluations", len(times))
    for name, value in (("fastest", times.min()), ("median", np.median(times)), ("slowest", times.max())):
        record.measure(f"eval_perf, {name}", float(value), "ms")
    for part, numbers in reports[-1].frequencies.items():
        record.note(f"{part} frequencies as eval_perf prints them: {', '.join(map(str, numbers))}")
    pytest.skip(
        f"measured, not judged: eval_perf gives means (median of {len(times)}: {np.median(times):.3f} ms), "
        "and LAT-01 is about quantiles of single runs"
    )


@pytest.mark.requirement("ACC-06")
@pytest.mark.models("digits_cnn")
def test_operators_on_the_cpu(
    connected: ConnectedSession, record: ItemRecord, model: Model | UserModel
) -> None:
    """Where each layer ran, as eval_perf says with perf_debug."""
    if connected.soc.runtime == "librknnmrt":
        pytest.skip(f"{connected.soc.name}: eval_perf has no figures per layer there (user guide 3.2.3)")
    (report,) = connected.performance(model, per_layer=True)
    if not report.layers:
        raise Inconclusive(f"board {connected.board.name}: eval_perf with perf_debug named no layer")
    fallen = report.cpu_operators
    record.measure("layers", len(report.layers))
    record.measure("operators on the CPU", len(fallen))
    record.note(f"on the CPU: {', '.join(fallen) or 'none'}")
    allowed = model.table.cpu_operators if isinstance(model, UserModel) else 0
    if allowed is None:
        pytest.skip(f'measured, not judged: [[model]] "{model.name}" declares no cpu_operators')
    if len(fallen) > allowed:
        raise ConformanceFailure(
            f"board {connected.board.name}: {len(fallen)} operators of {model.name} ran on the CPU, "
            f"declared: at most {allowed}: {', '.join(fallen)}"
        )
