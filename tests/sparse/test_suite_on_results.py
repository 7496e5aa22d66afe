"""The oracles of suites/sparse on results fail on what they shall catch (SPARSE-04, -05, -06, -08).

The suite's own test functions run here on made-up scores.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from sparse.suite_under_test import board, suite

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.verdict import ItemRecord

Floats = NDArray[np.float32]
RESULTS = suite("results")


@pytest.fixture
def record() -> ItemRecord:
    return ItemRecord("suites/sparse", ("SPARSE-04",), 0)


# SPARSE-04, SPARSE-05, SPARSE-06: scores


def scores_of(change: Callable[[Floats, str, bool], Floats]) -> Callable[..., Floats]:
    """The quantised models' own scores, changed as a wrong board would."""

    def scores(name: str, count: int, *, sparse_infer: bool = True) -> Floats:
        inputs = models.load_labelled(name).inputs[:count]
        return change(run_onnx(models.load(name).qdq_onnx, inputs)[0].copy(), name, sparse_infer)

    return scores


def moved(steps: int) -> Callable[..., Floats]:
    """With sparse_infer one score is some steps off."""

    def change(scores: Floats, name: str, sparse: bool) -> Floats:
        step = float(np.diff(np.unique(scores)).min())
        scores[3, 5] += steps * step if sparse else 0
        return scores

    return scores_of(change)


@pytest.mark.parametrize(("steps", "passes"), [(0, True), (3, True), (-3, True), (4, False), (-4, False)])
def test_three_steps_are_the_limit(record: ItemRecord, steps: int, passes: bool) -> None:
    def judge() -> None:
        RESULTS.test_sparse_inference_changes_little(moved(steps), record, "digits_aligned_grid")

    if passes:
        judge()
    else:
        with pytest.raises(ConformanceFailure, match="moves a score by 4 steps"):
            judge()
    assert {m.name: m.value for m in record.measurements}["largest difference"] == abs(steps)


def test_constant_scores_show_nothing(record: ItemRecord) -> None:
    constant = scores_of(lambda scores, name, sparse: np.ones_like(scores))
    with pytest.raises(Inconclusive, match="constant"):
        RESULTS.test_sparse_inference_changes_little(constant, record, "digits_aligned_grid")


@pytest.mark.parametrize(("steps", "passes"), [(0, True), (1, False)])
def test_a_dense_model_must_not_change_at_all(record: ItemRecord, steps: int, passes: bool) -> None:
    def judge() -> None:
        RESULTS.test_dense_weights_compute_the_same(moved(steps), record)

    if passes:
        judge()
    else:
        with pytest.raises(ConformanceFailure, match=r"sparse_infer changes 0\.2% of 640 scores"):
            judge()


def loses(count: int) -> Callable[..., Floats]:
    """The pruned model is wrong on ``count`` pictures more than it is."""

    def change(scores: Floats, name: str, sparse: bool) -> Floats:
        if name != "digits_aligned":
            labels = models.load_labelled(name).labels
            right = np.flatnonzero(scores.argmax(axis=1) == labels)[:count]
            scores[right] = np.roll(scores[right], 1, axis=1)
        return scores

    return scores_of(change)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [(0, None), (3, None), (8, Inconclusive), (30, ConformanceFailure), (400, ConformanceFailure)],
)
def test_lost_pictures(record: ItemRecord, lost: int, expected: type[Exception] | None) -> None:
    def judge() -> None:
        RESULTS.test_pruning_costs_no_more_accuracy_than_declared(
            loses(lost), record, "digits_aligned_output"
        )

    if expected is None:
        judge()
    else:
        with pytest.raises(expected, match=r"of 400 samples lost, \d+ gained, exact McNemar p = "):
            judge()
    figures = {m.name: m.value for m in record.measurements}
    assert figures["labelled"] == 400
    assert {"McNemar p", "loss excluded at 95%", "declared margin", "top-1 flips"} <= set(figures)


@pytest.mark.parametrize("broken", [np.zeros_like, lambda scores: scores[:, ::-1], lambda scores: -scores])
def test_a_board_that_gets_both_models_wrong_shows_nothing(
    record: ItemRecord, broken: Callable[[Floats], Floats]
) -> None:
    """The pruned model loses nothing there."""
    wrong = scores_of(lambda scores, name, sparse: broken(scores))
    with pytest.raises(Inconclusive, match="mistrusted: the dense model is right on"):
        RESULTS.test_pruning_costs_no_more_accuracy_than_declared(wrong, record, "digits_aligned_grid")


def test_a_sibling_that_is_dense_is_noticed(monkeypatch: pytest.MonkeyPatch, record: ItemRecord) -> None:
    monkeypatch.setattr(RESULTS, "SIBLINGS", {"digits_aligned": RESULTS.SIBLINGS["digits_aligned_grid"]})
    with pytest.raises(HarnessError, match=r"layer 'tall' holds none \(0% zeros\), not 16:4"):
        RESULTS.test_pruning_costs_no_more_accuracy_than_declared(loses(0), record, "digits_aligned")


# SPARSE-08


@pytest.mark.parametrize("broken", [None, 1, 29])
def test_one_run_that_differs_is_seen(
    record: ItemRecord, broken: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort = SimpleNamespace(rounds=lambda count: count // 2)

    def simulate(session: object, model: models.Model, inputs: Floats, *, sparse_infer: bool) -> list[Floats]:
        assert sparse_infer
        outputs = run_onnx(model.qdq_onnx, inputs)[0].copy()
        if broken is not None:
            outputs[4 * broken + 2, 0] += 0.001
        return [outputs]

    monkeypatch.setattr(RESULTS, "simulate", simulate)

    def judge() -> None:
        RESULTS.test_repeated_simulations_give_the_same_bytes(
            board("rk3576"), effort, record, "digits_aligned_grid"
        )

    if broken is None:
        judge()
        figures = {m.name: m.value for m in record.measurements}
        assert figures["iterations"] == 30
        assert figures["fault rate excluded at 95%"] == pytest.approx(0.095, abs=0.001)
    else:
        with pytest.raises(ConformanceFailure, match=f"1 of 30 runs .* the earliest is run {broken}"):
            judge()
