"""SPARSE-01, -02, -04, -05, -07 for models of boards.toml with a sparse mode (docs/user-models.md)."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, Inconclusive, UserModelError
from pytest_rknpu.fixtures import Inference, ItemRecord, LiveBoard
from pytest_rknpu.measure import Tolerance, count_steps, judge_loss, judge_outputs, pair, right_answers
from pytest_rknpu.measure.grids import int8_step
from pytest_rknpu.session import Subject, UserModel, UserModels, scores_of
from pytest_rknpu.session.builds import own_build
from pytest_rknpu.sparsity import INFERENCE, MODES, Mode, reasons, sparsity_of
from pytest_rknpu.sparsity.engagement import Shown, judge, outdated
from pytest_rknpu.sparsity.layers import Graph
from pytest_rknpu.sparsity.rows import Found, find_layers
from pytest_rknpu.toolchain import Plan

pytestmark = [pytest.mark.needs("sparse"), pytest.mark.models()]

SAMPLES = 64
#: What the 2.5.0 simulator differs by in sparse layers, as for the models that are shipped.
STEPS_ALLOWED = 3
WITHOUT_STEPS = Tolerance(0.999, 30.0, inf, inf)
#: What the compiler for RK3576 adds to the weights of any model with sparse layers (docs/sparse.md).
FIXED_PART = 16 * 1024


@pytest.fixture
def pruned(user_models: UserModels, model_name: str) -> UserModel:
    """The model, if its owner says that it was pruned."""
    model = user_models.get(model_name)
    assert model is not None  # these tests are for models of boards.toml alone
    if model.table.sparse is None:
        pytest.skip(f'[[model]] "{model_name}" declares no sparse mode')
    return model


@pytest.mark.runtimes("simulator")  # a build log is the host's: it says nothing of a board
@pytest.mark.requirement("SPARSE-01", "SPARSE-02")
def test_pruned_layers_run_sparse(board: LiveBoard, pruned: UserModel, record: ItemRecord) -> None:
    """Layers within the guide's limits hold the declared mode's pattern and run so; the others stay dense."""
    if not pruned.is_onnx:
        pytest.skip(f"{pruned.name} is {pruned.table.format}: the layers' weights are read from ONNX only")
    plan = own_build(board.board.platform, pruned, sparse_infer=True).log.plan
    found = find_layers(pruned.onnx, plan.layers)
    for one in found.shown:
        record.measure(f"SparseRatio of {one.layer.name}", str(one.ratio))
        if one.outside:
            record.note(f"{one.layer.name} is outside the guide's limits: {', '.join(one.outside)}")
    require_pattern(pruned, record)
    toolkit, soc = board.versions["toolkit"], board.board.soc
    to_judge = [one for one in found.shown if not as_promised_at_last(one, toolkit, soc, record)]
    if to_judge:
        judge(to_judge, toolkit, soc)
    require_most_found(pruned, found, record)


def require_pattern(pruned: UserModel, record: ItemRecord) -> None:
    """Some layer within the limits was pruned as the table says; which were not is noted."""
    graph, wanted = Graph(pruned.onnx), MODES[Mode(pruned.table.sparse or 0)].kind
    inside = [layer for layer in graph.layers() if not reasons(layer, INFERENCE)]
    kinds = [(layer.name, sparsity_of(graph.weights(layer)).kind) for layer in inside]
    unpruned = [f"{name} ({kind})" for name, kind in kinds if kind is not wanted]
    record.measure("layers within the limits", len(inside))
    if not inside or len(unpruned) == len(inside):
        raise ConformanceFailure(
            f"{pruned.name}: no layer that could run sparse holds the pattern of mode {pruned.table.sparse}: "
            f"{', '.join(unpruned) or 'none is within the limits of the guide'}"
        )
    if unpruned:
        record.note(f"within the limits, but not pruned to mode {pruned.table.sparse}: {', '.join(unpruned)}")


def as_promised_at_last(one: Shown, toolkit: str, soc: str, record: ItemRecord) -> bool:
    """A layer for which this toolkit version does better than it was seen to: right, and worth a remark."""
    if not outdated(one, toolkit, soc):
        return False
    record.note(
        f"{one.layer.name}: SparseRatio {one.ratio} as promised, where {toolkit} was seen to do otherwise"
    )
    return True


def require_most_found(pruned: UserModel, found: Found, record: ItemRecord) -> None:
    """The compiler rewrites some layers (a convolution behind a Concat, say); most have to be left."""
    for why in found.lost.values():
        record.note(f"not judged: {why}; the compiler rewrote it")
    lost = [layer.name for layer in found.lost if not reasons(layer, INFERENCE)]
    judged = [one for one in found.shown if not one.outside]
    record.measure("layers within the limits that the compiler rewrote", len(lost))
    if len(lost) > len(judged):
        raise Inconclusive(
            f"{pruned.name}: of {len(lost) + len(judged)} layers within the limits the compiler rewrote "
            f"{len(lost)}, so that its log does not tell of them: {', '.join(lost)}"
        )


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


@pytest.mark.requirement("SPARSE-05")
def test_pruning_costs_no_more_accuracy_than_declared(
    inference: Inference, pruned: UserModel, user_models: UserModels, subject: Subject, record: ItemRecord
) -> None:
    """The model and the one that it was pruned from, on its labelled data: exact McNemar, declared margin."""
    dense, margin, labels = (
        user_models.get(pruned.table.dense or ""),
        pruned.table.pruning_loss,
        subject.labels,
    )
    if dense is None or margin is None or labels is None:
        pytest.skip(f'[[model]] "{pruned.name}" names no dense model to compare it with, and no pruning_loss')
    if [form.shape for form in dense.forms] != [form.shape for form in pruned.forms]:
        raise UserModelError(f'[[model]] "{pruned.name}", key "dense": {dense.name} takes other inputs')
    scores = [scores_of(inference(model, subject.samples.inputs), subject) for model in (dense, pruned)]
    right, right_pruned = (right_answers(each, labels) for each in scores)
    require_sound(right, labels, margin)
    record.measure("top-1 dense", right.mean(), "")
    record.measure("top-1 pruned", right_pruned.mean(), "")
    problems = judge_loss(pair(right, right_pruned), margin, record.measure)
    if problems:
        raise ConformanceFailure(f"{pruned.name}: {'; '.join(problems)}")


def require_sound(right: NDArray[np.bool_], labels: NDArray[np.int64], margin: float) -> None:
    """Against a dense model that is wrong itself a pruned one loses nothing."""
    commonest = int(np.bincount(labels).max())
    if right.sum() - margin * labels.size <= commonest:
        raise Inconclusive(
            f"mistrusted: the dense model is right on {right.mean():.1%}, and {commonest / labels.size:.1%} "
            "of the labels are one class: an output that never changes would pass"
        )


@pytest.mark.runtimes("simulator")
@pytest.mark.requirement("SPARSE-07")
def test_sparse_is_not_slower(board: LiveBoard, pruned: UserModel, record: ItemRecord) -> None:
    """Weight sizes and predicted cycles, sparse_infer on and off."""
    sparse, dense = (
        own_build(board.board.platform, pruned, sparse_infer=infer).log.plan for infer in (True, False)
    )
    for name, plan in (("sparse", sparse), ("dense", dense)):
        record.measure(f"{name} weights", plan.weight_total.bytes, "B")
        record.measure(f"{name} predicted cycles", plan.predicted_cycles, "cycles")
    problems = losses(sparse, dense)
    if problems:
        raise ConformanceFailure(f"{pruned.name}: {'; '.join(problems)}")


def losses(sparse: Plan, dense: Plan) -> list[str]:
    """What sparse inference costs instead of saving; the fixed part apart, by which small models grow."""
    problems = []
    if sparse.weight_total.bytes > dense.weight_total.bytes + FIXED_PART:
        problems.append(f"weights take {sparse.weight_total.text} sparse, {dense.weight_total.text} dense")
    if sparse.predicted_cycles > dense.predicted_cycles:
        problems.append(
            f"the compiler predicts {sparse.predicted_cycles} cycles sparse, {dense.predicted_cycles} dense"
        )
    return problems
