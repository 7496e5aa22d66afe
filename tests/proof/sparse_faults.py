"""What may be wrong with sparse inference beyond its build log's ratios: refusal, results, savings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.sparsity import Mode
from pytest_rknpu.toolchain import Plan
from tests.proof.doctored import DoctoredFault, Trials, described_board, new_record, replaced
from tests.proof.stored_logs import sparse_plan
from tests.suite_modules import suite

Floats = NDArray[np.float32]
PRUNED = "digits_aligned_grid"
TOOLKIT = "2.5.0"


def _results() -> Any:
    return suite("sparse/test_sparse_results.py")


def _accepted() -> Iterator[Any]:
    """RK3566 has no sparse inference."""
    test = suite("sparse/test_sparse_refusal.py").test_sparse_inference_is_refused_where_there_is_none
    yield test, (described_board("rk3566"), lambda *_: sparse_plan("dense-rk3576"), TOOLKIT, new_record())


def _saved(sparse: str, **replacements: str) -> Trials:
    """Sparse weights or cycles of a dense build; ``sparse`` is the log of the sparse one."""

    def plan_of(onnx: bytes, calibration: Floats, *, sparse_infer: bool = True) -> Plan:
        plan = sparse_plan(sparse if sparse_infer else "dense-rk3576", texts=replacements)
        assert isinstance(plan, Plan)
        return plan

    def trials() -> Iterator[Any]:
        sizes = suite("sparse/test_sparse_sizes.py")
        yield (
            sizes.test_sparse_weights_are_smaller_and_not_slower,
            (described_board("rk3576"), plan_of, TOOLKIT, new_record(), Mode.INPUT),
        )

    return trials


def _scores(change: Callable[[Floats, str, bool], None]) -> Callable[..., Floats]:
    """The quantised models' own scores, changed as a wrong board would."""

    def scores(name: str, count: int, *, sparse_infer: bool = True) -> Floats:
        found: Floats = run_onnx(models.load(name).qdq_onnx, models.load_labelled(name).inputs[:count])[0]
        found = found.copy()
        change(found, name, sparse_infer)
        return found

    return scores


def _moved(steps: int) -> Trials:
    """One score is some quantisation steps off with sparse_infer."""

    def change(scores: Floats, name: str, sparse: bool) -> None:
        if sparse:
            scores[3, 5] += steps * float(np.diff(np.unique(scores)).min())

    def trials() -> Iterator[Any]:
        yield _results().test_sparse_inference_changes_little, (_scores(change), new_record(), PRUNED)
        yield _results().test_dense_weights_compute_the_same, (_scores(change), new_record())

    return trials


def _lossy(count: int) -> Trials:
    """So many of 400 pictures that were right are wrong."""

    def change(scores: Floats, name: str, sparse: bool) -> None:
        if name == PRUNED:
            right = np.flatnonzero(scores.argmax(axis=1) == models.load_labelled(name).labels)[:count]
            scores[right] = np.roll(scores[right], 1, axis=1)

    def trials() -> Iterator[Any]:
        test = _results().test_pruning_costs_no_more_accuracy_than_declared
        yield test, (_scores(change), new_record(), PRUNED)

    return trials


def _unsteady(by: float) -> Trials:
    """One of the simulated runs differs in one score by less than a step."""

    def simulate(session: object, model: models.Model, inputs: Floats, *, sparse_infer: bool) -> list[Floats]:
        outputs = run_onnx(model.qdq_onnx, inputs)[0].copy()
        outputs[len(outputs) // 2, 0] += by
        return [outputs]

    def trials() -> Iterator[Any]:
        module, effort = _results(), SimpleNamespace(rounds=lambda normal: normal)
        with replaced(module, "simulate", simulate):
            yield (
                module.test_repeated_simulations_give_the_same_bytes,
                (described_board("rk3576"), effort, new_record(), PRUNED),
            )

    return trials


SPARSE_FAULTS = (
    DoctoredFault(
        "sparse-accepted-without-engine",
        "The toolkit builds with sparse_infer for a SoC without sparse inference",
        ("SPARSE-03",),
        _accepted,
    ),
    DoctoredFault(
        "sparse-moves-a-score",
        "With sparse_infer one score is four steps off",
        ("SPARSE-04", "SPARSE-06"),
        _moved(steps=4),
    ),
    DoctoredFault(
        "sparse-loses-pictures", "A pruned model is wrong on 30 pictures more", ("SPARSE-05",), _lossy(30)
    ),
    DoctoredFault(
        "sparse-weights-not-smaller",
        "Weights of a sparse build are as large as those of the dense one",
        ("SPARSE-07",),
        _saved(
            "aligned0-rk3576",
            **{"Total Weight Memory Size: 521.625KB": "Total Weight Memory Size: 657.938KB"},
        ),
    ),
    DoctoredFault(
        "sparse-predicted-slower",
        "The compiler predicts more cycles for a sparse layer than for the dense one",
        ("SPARSE-07",),
        _saved("aligned0-rk3576", **{"-274/36864/36864": "-274/99999/99999"}),
    ),
    DoctoredFault(
        "sparse-result-unsteady",
        "One of many equal runs gives another result",
        ("SPARSE-08",),
        _unsteady(0.001),
    ),
)

SOUND: tuple[Trials, ...] = (_moved(0), _lossy(0), _unsteady(0.0), _saved("aligned0-rk3576"))
"""The same without a fault."""
