"""SPARSE-04, -05, -06, -08: what pruned models compute (guide 4.1.7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.fixtures import Effort, ItemRecord, LiveBoard
from pytest_rknpu.measure import count_steps, fault_rate_bound, judge_loss, pair, right_answers
from pytest_rknpu.session import Npu, Program, SimulatorSession, ZeroCopy
from pytest_rknpu.session.inference import quantise, simulate
from pytest_rknpu.sparsity import Kind, patterns

Floats = NDArray[np.float32]
Scores = Callable[..., Floats]

DENSE = "digits_aligned"
SIBLINGS = {
    "digits_aligned_input": Kind.INPUT,
    "digits_aligned_output": Kind.OUTPUT,
    "digits_aligned_grid": Kind.GRID,
}
#: The siblings' layers within the guide's limits.
PRUNED_LAYERS = ("tall", "pointwise")

#: Sparse layers round another way than dense ones; RKNN-Toolkit2 2.5.0's simulator differs by up to two steps
#: in the scores of these models, by up to three in others.
STEPS_ALLOWED = 3
ON_OFF_SAMPLES = 64

#: Of all held-out pictures at most this share may be lost by pruning, at 95 % confidence. 400 pictures can
#: show that if up to 5 are lost.
MARGIN = 0.03

#: By how much the dense model's top-1 may be below the catalogue's for a comparison with it to mean anything.
DENSE_DROP = 0.02

#: What the board runs again and again.
REPEATED_SAMPLES = 4


def require_pruned(name: str) -> None:
    """A comparison with a sibling that is not sparse would say nothing."""
    held = patterns(models.load(name).float_onnx)
    for layer in PRUNED_LAYERS:
        if held[layer].kind is not SIBLINGS[name]:
            raise HarnessError(f"{name}: layer {layer!r} holds {held[layer]}, not {SIBLINGS[name]}")


# First, because its scores are those of the other tests, and more of them.
@pytest.mark.requirement("SPARSE-05")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("name", SIBLINGS)
def test_pruning_costs_no_more_accuracy_than_declared(scores: Scores, record: ItemRecord, name: str) -> None:
    """Dense and pruned classifier on the same held-out pictures: exact McNemar, and the declared margin."""
    require_pruned(name)
    labels = models.load_labelled(name).labels
    dense, pruned = scores(DENSE, len(labels)), scores(name, len(labels))
    right, right_pruned = right_answers(dense, labels), right_answers(pruned, labels)
    record.measure("top-1 dense", right.mean(), "")
    record.measure("top-1 pruned", right_pruned.mean(), "")
    require_sound(float(right.mean()))
    record.measure("top-1 flips", int((dense.argmax(axis=1) != pruned.argmax(axis=1)).sum()), "samples")
    problems = judge_loss(pair(right, right_pruned), MARGIN, record.measure)
    if problems:
        raise ConformanceFailure(f"{name}: {'; '.join(problems)}")


def require_sound(top1: float) -> None:
    """Against a dense model that is wrong itself (ACC-01) a pruned one loses nothing."""
    expected = models.load(DENSE).provenance.measured["float_top1"]
    if top1 < expected - DENSE_DROP:
        raise Inconclusive(
            f"mistrusted: the dense model is right on {top1:.1%} here, {expected:.1%} when it was trained"
        )


@pytest.mark.runtimes("simulator", "librknnrt")  # an emulated board has one packed ONNX
@pytest.mark.requirement("SPARSE-04")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("name", SIBLINGS)
def test_sparse_inference_changes_little(scores: Scores, record: ItemRecord, name: str) -> None:
    """The same pruned weights with sparse_infer on and off: no score moves by more than a few steps."""
    require_pruned(name)
    on = scores(name, ON_OFF_SAMPLES, sparse_infer=True)
    off = scores(name, ON_OFF_SAMPLES, sparse_infer=False)
    difference = count_steps(off, on)
    record.measure("compared", difference.count, "scores")
    record.measure("differ", difference.share, "")
    record.measure("largest difference", difference.largest, "steps")
    record.measure("step", difference.step, "output unit")
    if difference.largest > STEPS_ALLOWED:
        raise ConformanceFailure(
            f"{name}: sparse_infer moves a score by {difference.largest} steps "
            f"({difference.share:.1%} of {difference.count} differ), declared: at most {STEPS_ALLOWED}"
        )


@pytest.mark.runtimes("simulator", "librknnrt")  # an emulated board has one packed ONNX
@pytest.mark.requirement("SPARSE-06")
@pytest.mark.needs("sparse")
def test_dense_weights_compute_the_same(scores: Scores, record: ItemRecord) -> None:
    """A dense model with sparse_infer on and off: equal bytes, so that nothing was pruned silently."""
    on = scores(DENSE, ON_OFF_SAMPLES, sparse_infer=True)
    off = scores(DENSE, ON_OFF_SAMPLES, sparse_infer=False)
    difference = count_steps(off, on)
    record.measure("compared", difference.count, "scores")
    if not np.array_equal(on, off):
        raise ConformanceFailure(
            f"{DENSE}: sparse_infer changes {difference.share:.1%} of {difference.count} scores of a dense "
            f"model, by up to {difference.largest} steps"
        )


@pytest.mark.requirement("SPARSE-08")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("name", SIBLINGS)
def test_repeated_runs_give_the_same_bytes(npu: Npu, effort: Effort, name: str) -> None:
    """500 runs in one command list, each compared with the board's most careful result."""
    require_pruned(name)
    model = npu.model(name, sparse_infer=True)
    native = model.description.inputs[0].native
    samples = models.load_labelled(name).inputs[:REPEATED_SAMPLES]
    inputs = [npu.native_input(model, quantise(sample[np.newaxis], native)) for sample in samples]
    expected = npu.reference(model, inputs)
    io = ZeroCopy("a", model)
    rounds = effort.rounds(500)
    program = Program()
    io.open(program)
    with program.repeat(rounds):
        program.write_cycle(io.input, inputs)
        program.run(io.context)
        io.compare_output(program, expected, "output")
    io.close(program)
    npu.require_same(npu.execute(program)["output"], "a repeated run gave other bytes")
    npu.record_bound(rounds)


@pytest.mark.runtimes("simulator")
@pytest.mark.requirement("SPARSE-08")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("name", ["digits_aligned_grid"])
def test_repeated_simulations_give_the_same_bytes(
    board: LiveBoard, effort: Effort, record: ItemRecord, name: str
) -> None:
    """Fewer runs than on a board, on the simulator, which really runs; the bound says what they are worth."""
    require_pruned(name)
    rounds = effort.rounds(60)
    samples = models.load_labelled(name).inputs[:REPEATED_SAMPLES]
    session = cast(SimulatorSession, board.session)
    outputs = simulate(session, models.load(name), np.concatenate([samples] * rounds), sparse_infer=True)[0]
    require_repeated(outputs, rounds)
    record.measure("iterations", rounds)
    record.measure("fault rate excluded at 95%", fault_rate_bound(rounds))


def require_repeated(outputs: Floats, rounds: int) -> None:
    """``outputs`` (rounds * samples, ...) repeat those of the first round."""
    by_round = outputs.reshape(rounds, -1)
    different = np.flatnonzero((by_round != by_round[0]).any(axis=1))
    if different.size:
        raise ConformanceFailure(
            f"{different.size} of {rounds} runs gave other outputs than the first one; "
            f"the earliest is run {different[0]}"
        )
