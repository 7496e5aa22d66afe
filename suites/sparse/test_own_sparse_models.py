"""SPARSE-01, -02, -04, -07 for the models of boards.toml that declare a sparse mode (docs/user-models.md)."""

from __future__ import annotations

from math import inf

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Inference, ItemRecord, LiveBoard
from pytest_rknpu.measure import Tolerance, count_steps, judge_outputs
from pytest_rknpu.measure.grids import int8_step
from pytest_rknpu.session import Subject, UserModel, UserModels
from pytest_rknpu.session.own_builds import OwnBuild, own_build
from pytest_rknpu.sparsity import INFERENCE, MODES, Mode, reasons
from pytest_rknpu.sparsity.engagement import judge
from pytest_rknpu.sparsity.rows import shown_by

pytestmark = [pytest.mark.needs("sparse"), pytest.mark.models()]

SAMPLES = 64
#: What the 2.5.0 simulator differs by in sparse layers, as for the models that are shipped.
STEPS_ALLOWED = 3
WITHOUT_STEPS = Tolerance(0.999, 30.0, inf, inf)


@pytest.fixture
def pruned(user_models: UserModels, model_name: str) -> UserModel:
    """The model, if its owner says that it was pruned."""
    model = user_models.get(model_name)
    assert model is not None  # these tests are for models of boards.toml alone
    if model.table.sparse is None:
        pytest.skip(f'[[model]] "{model_name}" declares no sparse mode')
    return model


def builds(board: LiveBoard, model: UserModel) -> tuple[OwnBuild, OwnBuild]:
    """(sparse_infer on, off)."""
    on = own_build(board.board, model, sparse_infer=True)
    return on, own_build(board.board, model, sparse_infer=False)


@pytest.mark.requirement("SPARSE-01", "SPARSE-02")
def test_pruned_layers_run_sparse(board: LiveBoard, pruned: UserModel, record: ItemRecord) -> None:
    """Layers within the guide's limits hold the declared mode's pattern and run so; the others stay dense."""
    build = own_build(board.board, pruned, sparse_infer=True)
    if not pruned.is_onnx:
        pytest.skip(f"{pruned.name} is {pruned.table.format}: the layers' weights are read from ONNX only")
    shown = shown_by(pruned.onnx, build.plan.layers)
    wanted = MODES[Mode(pruned.table.sparse or 0)].kind
    for one in shown:
        record.measure(f"SparseRatio of {one.layer.name}", str(one.ratio))
        outside = reasons(one.layer, INFERENCE)
        if outside:
            record.note(f"{one.layer.name} is outside the guide's limits: {', '.join(outside)}")
    inside = [one for one in shown if not reasons(one.layer, INFERENCE)]
    unpruned = [f"{one.layer.name} ({one.kind.value})" for one in inside if one.kind is not wanted]
    record.measure("layers within the limits", len(inside))
    if not inside or len(unpruned) == len(inside):
        raise ConformanceFailure(
            f"{pruned.name}: no layer that could run sparse holds the pattern of mode {pruned.table.sparse}: "
            f"{', '.join(unpruned) or 'none is within the limits of the guide'}"
        )
    if unpruned:
        record.note(f"within the limits, but not pruned to mode {pruned.table.sparse}: {', '.join(unpruned)}")
    judge(shown, board.versions["toolkit"], board.board.soc)


@pytest.mark.runtimes("simulator", "librknnrt", "connected")  # an emulated board has one packed ONNX
@pytest.mark.requirement("SPARSE-04")
def test_sparse_inference_changes_little(
    board: LiveBoard, inference: Inference, pruned: UserModel, subject: Subject, record: ItemRecord
) -> None:
    """The same pruned weights with sparse_infer on and off: no output moves by more than a few steps."""
    inputs = subject.samples.first(SAMPLES).inputs
    on = inference(pruned, inputs, sparse_infer=True)
    off = inference(pruned, inputs, sparse_infer=False)
    problems = []
    for number, (sparse, dense) in enumerate(zip(on, off, strict=True)):
        if int8_step(dense) is None or int8_step(sparse) is None:
            record.note(f"output {number} is computed in float and has no steps: compared as a whole")
            problems += judge_outputs([dense], [sparse], [WITHOUT_STEPS], record.measure)
            continue
        difference = count_steps(dense, sparse)
        record.measure(f"output {number} differs", difference.share, "")
        record.measure(f"output {number} largest difference", difference.largest, "steps")
        if difference.largest > STEPS_ALLOWED:
            problems.append(f"output {number} by {difference.largest} steps")
    if problems:
        raise ConformanceFailure(
            f"{pruned.name}: sparse_infer moves {'; '.join(problems)}, declared: at most {STEPS_ALLOWED}"
        )


@pytest.mark.requirement("SPARSE-07")
def test_sparse_is_not_slower(board: LiveBoard, pruned: UserModel, record: ItemRecord) -> None:
    """Weight sizes and predicted cycles, sparse_infer on and off; small layers may grow: cycles decide."""
    on, off = builds(board, pruned)
    cycles = [sum(layer.cycles.total for layer in build.plan.layers) for build in (on, off)]
    for name, build, count in (("sparse", on, cycles[0]), ("dense", off, cycles[1])):
        record.measure(f"{name} weights", build.plan.weight_total.bytes, "B")
        record.measure(f"{name} predicted cycles", count, "cycles")
    if cycles[0] > cycles[1]:
        raise ConformanceFailure(
            f"{pruned.name}: the compiler predicts {cycles[0]} cycles sparse, {cycles[1]} dense"
        )
