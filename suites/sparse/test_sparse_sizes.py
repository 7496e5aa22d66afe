"""SPARSE-07: what sparse inference saves, in weight bytes and predicted cycles (guide 4.1.7).

The clock is test_sparse_time's. Sparse weights come with an index, and on RK3576 with a fixed part, so
that small layers may grow: of small models only the cycles are judged, the sizes are said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity import Mode, prune_onnx
from pytest_rknpu.sparsity.engagement import Ratio, judge
from pytest_rknpu.sparsity.rows import shown_by
from pytest_rknpu.toolchain import Plan

PlanOf = Callable[..., Plan]
SMALL = ("digits_aligned_input", "digits_aligned_output", "digits_aligned_grid")

# A build log is the host's: it says nothing of a board, and an emulated board builds nothing.
pytestmark = pytest.mark.runtimes("simulator")


def write_down(sparse: Plan, dense: Plan, record: ItemRecord) -> None:
    """Both sizes and both predictions."""
    for name, plan in (("sparse", sparse), ("dense", dense)):
        record.measure(f"{name} weights", plan.weight_total.bytes, "B")
        record.measure(f"{name} predicted cycles", plan.predicted_cycles, "cycles")


def problems_of(sparse: Plan, dense: Plan) -> list[str]:
    """What a large model must save and does not."""
    problems = []
    if sparse.weight_total.bytes >= dense.weight_total.bytes:
        problems.append(f"weights take {sparse.weight_total.text} sparse, {dense.weight_total.text} dense")
    return problems + slower(sparse, dense)


def slower(sparse: Plan, dense: Plan) -> Sequence[str]:
    if sparse.predicted_cycles <= dense.predicted_cycles:
        return []
    return [f"the compiler predicts {sparse.predicted_cycles} cycles sparse, {dense.predicted_cycles} dense"]


@pytest.mark.requirement("SPARSE-07")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("mode", Mode, ids=lambda mode: f"mode{int(mode)}")
def test_sparse_weights_are_smaller_and_not_slower(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, mode: Mode
) -> None:
    """A model with 658 KB of weights, pruned, with sparse_infer on and off."""
    probe = sparse_probes.aligned()
    pruned, _ = prune_onnx(probe.onnx, mode)
    sparse, dense = plan_of(pruned, probe.calibration), plan_of(pruned, probe.calibration, sparse_infer=False)
    write_down(sparse, dense, record)
    shown = shown_by(pruned, sparse.layers)
    if all(one.ratio is Ratio.DENSE for one in shown):
        judge(shown, toolkit, board.board.soc)  # says why nothing can be saved
    problems = problems_of(sparse, dense)
    if problems:
        raise ConformanceFailure("; ".join(problems))


@pytest.mark.requirement("SPARSE-07")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("name", SMALL)
def test_small_sparse_models_are_not_slower(plan_of: PlanOf, record: ItemRecord, name: str) -> None:
    """The trained classifiers: their size is said, their predicted cycles are judged."""
    model = models.load(name)
    sparse = plan_of(model.float_onnx, model.calibration)
    dense = plan_of(model.float_onnx, model.calibration, sparse_infer=False)
    write_down(sparse, dense, record)
    if sparse.weight_total.bytes > dense.weight_total.bytes:
        record.note(
            f"{name}: sparse weights are larger ({sparse.weight_total.text}) than dense ones "
            f"({dense.weight_total.text}); small layers may grow"
        )
    problems = slower(sparse, dense)
    if problems:
        raise ConformanceFailure("; ".join(problems))
