"""What the SPARSE tests of the user's models catch, and what they do not take for a fault.

The suite's own test functions run here on doctored logs of RKNN-Toolkit2 and made-up scores.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from sparse import real_logs
from sparse.suite_under_test import board, suite_file

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive, UserModelError, Waived
from pytest_rknpu.models.user_data import InputForm, Samples
from pytest_rknpu.toolchain import Plan
from pytest_rknpu.verdict import ItemRecord

OWN = suite_file("test_own_sparse_models.py")
RENAMED = "Conv:an_input_conv"  # what the compiler calls a layer that it rewrote


@pytest.fixture
def record() -> ItemRecord:
    return ItemRecord("suites/sparse", ("SPARSE-01",), 0)


def user_model(onnx: bytes, **keys: Any) -> Any:
    """What the tests read of a model of boards.toml."""
    table = SimpleNamespace(**{"sparse": 0, "dense": None, "pruning_loss": None, **keys})
    return SimpleNamespace(
        name="mine", table=table, onnx=onnx, is_onnx=True, forms=(InputForm("input", None),)
    )


Run = Callable[..., None]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, record: ItemRecord) -> Run:
    """``run(network, plan, soc, mode)``: SPARSE-01 and -02 of that network and that build log."""

    def of(network: str, plan: Plan, soc: str = "rk3576", mode: int = 0, toolkit: str = "2.5.0") -> None:
        monkeypatch.setattr(
            OWN, "own_build", lambda *_, **__: SimpleNamespace(log=SimpleNamespace(plan=plan))
        )
        live = board(soc)
        live.versions = {"toolkit": toolkit}
        OWN.test_pruned_layers_run_sparse(live, user_model(real_logs.network(network), sparse=mode), record)

    return of


def test_a_pruned_model_passes(run: Run, record: ItemRecord) -> None:
    run("aligned0", real_logs.plan_of("aligned0-rk3576"))
    figures = {m.name: m.value for m in record.measurements}
    assert figures["SparseRatio of large"] == "50%(IC)"
    assert figures["layers within the limits"] == 4
    assert figures["layers within the limits that the compiler rewrote"] == 0


def test_a_dense_model_that_is_claimed_sparse_fails(run: Run) -> None:
    with pytest.raises(ConformanceFailure, match=r"no layer that could run sparse holds .* square \(none\)"):
        run("dense", real_logs.plan_of("dense-rk3576"))


def test_a_model_pruned_in_another_mode_fails(run: Run) -> None:
    with pytest.raises(
        ConformanceFailure, match=r"the pattern of mode 1: square \(4:2 along input channels\)"
    ):
        run("aligned0", real_logs.plan_of("aligned0-rk3576"), mode=1)


def test_a_layer_that_runs_dense_fails(run: Run) -> None:
    with pytest.raises(ConformanceFailure, match=r"large: .*SparseRatio 0%"):
        run("aligned0", real_logs.plan_of("aligned0-rk3576", large="0%"))


def test_a_known_deviation_is_waived(run: Run) -> None:
    with pytest.raises(Waived, match=r"RKNN-Toolkit2 2\.5\.0 for rv1126b"):
        run("aligned0", real_logs.plan_of("aligned0-rv1126b"), soc="rv1126b")


def test_a_deviation_that_is_gone_is_no_fault_of_the_users_model(run: Run, record: ItemRecord) -> None:
    """Of the shipped networks it is one of this package, whose table is then wrong."""
    run("aligned0", real_logs.plan_of("aligned0-rk3576"), soc="rv1126b")
    assert any("as promised, where 2.5.0 was seen to do otherwise" in note for note in record.notes)


def renamed(*layers: str) -> Plan:
    """The log of a compiler that rewrote layers, as it does with a convolution behind a Concat."""
    return real_logs.plan_of("aligned0-rk3576", *((f"Conv:{layer}", RENAMED) for layer in layers))


def test_layers_that_the_compiler_rewrote_are_named_and_not_judged(run: Run, record: ItemRecord) -> None:
    run("aligned0", renamed("square"))
    assert any("not judged: the build log has no row for the layer 'square'" in note for note in record.notes)
    figures = {m.name: m.value for m in record.measurements}
    assert figures["layers within the limits that the compiler rewrote"] == 1


def test_too_few_layers_show_nothing(run: Run) -> None:
    with pytest.raises(
        Inconclusive, match=r"of 4 layers within the limits the compiler rewrote 3, .*: square, "
    ):
        run("aligned0", renamed("square", "pointwise", "large"))


def test_layers_of_one_name_show_nothing(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """ONNX does not forbid it; the rows of the log cannot be told apart then."""
    model = onnx.load_model_from_string(real_logs.network("aligned0"))
    for node in model.graph.node:
        node.name = "same"
    monkeypatch.setattr(real_logs, "network", lambda name: model.SerializeToString())
    with pytest.raises(Inconclusive, match="of 4 layers within the limits the compiler rewrote 4"):
        run("aligned0", real_logs.plan_of("aligned0-rk3576"))


def test_a_fault_outweighs_what_was_rewritten(run: Run) -> None:
    plan = real_logs.plan_of("aligned0-rk3576", ("Conv:square", RENAMED), large="0%")
    with pytest.raises(ConformanceFailure, match="large"):
        run("aligned0", plan)


# SPARSE-05


def costs(
    lost: int, record: ItemRecord, change: Callable[[Any], Any] = lambda scores: scores, **keys: Any
) -> None:
    """The pruned model is wrong on ``lost`` of 400 pictures on which the dense one is right."""
    labels = np.arange(400) % 10
    samples = Samples((np.zeros((400, 3), np.float32),), labels)
    dense, pruned = user_model(b""), user_model(b"", **{"dense": "dense", "pruning_loss": 0.03, **keys})

    def inference(model: Any, inputs: Any) -> list[Any]:
        answers = np.where(np.arange(400) < (lost if model is pruned else 0), labels + 1, labels) % 10
        return [change(np.eye(10, dtype=np.float32)[answers])]

    subject: Any = SimpleNamespace(name="mine", samples=samples, labels=labels)
    OWN.test_pruning_costs_no_more_accuracy_than_declared(
        inference,
        pruned,
        SimpleNamespace(get=lambda name: dense if name == "dense" else None),
        subject,
        record,
    )


@pytest.mark.parametrize(
    ("lost", "expected"), [(0, None), (4, None), (9, Inconclusive), (40, ConformanceFailure)]
)
def test_lost_pictures(record: ItemRecord, lost: int, expected: type[Exception] | None) -> None:
    if expected is None:
        costs(lost, record)
    else:
        with pytest.raises(expected, match=r"of 400 samples lost, 0 gained, exact McNemar p = "):
            costs(lost, record)
    assert {m.name: m.value for m in record.measurements}["labelled"] == 400


def test_a_dense_model_that_is_wrong_itself_shows_nothing(record: ItemRecord) -> None:
    with pytest.raises(Inconclusive, match=r"the dense model is right on 0\.0%, and 10\.0% of the labels"):
        costs(0, record, lambda scores: np.roll(scores, 1, axis=1))


def test_without_a_dense_model_it_is_skipped(record: ItemRecord) -> None:
    with pytest.raises(pytest.skip.Exception, match="names no dense model"):
        costs(0, record, dense=None)


def test_a_dense_model_that_takes_other_inputs_is_the_owners_affair(record: ItemRecord) -> None:
    other = user_model(b"")
    other.forms = (InputForm("input", (1, 5)),)
    with pytest.raises(UserModelError, match='key "dense": mine takes other inputs'):
        OWN.test_pruning_costs_no_more_accuracy_than_declared(
            None,
            user_model(b"", dense="d", pruning_loss=0.1),
            SimpleNamespace(get=lambda name: other),
            SimpleNamespace(labels=np.arange(3)),
            record,
        )


# SPARSE-07


@pytest.mark.parametrize(
    ("weights", "cycles", "words"),
    [
        ("521.625KB", "36864/36864", None),
        ("673.9KB", "36864/36864", None),  # within the fixed part
        ("674.1KB", "36864/36864", "weights take 674.1KB sparse, 657.938KB dense"),
        ("521.625KB", "99999/99999", "the compiler predicts .* cycles sparse, 98584 dense"),
    ],
)
def test_what_sparse_inference_costs(
    monkeypatch: pytest.MonkeyPatch, record: ItemRecord, weights: str, cycles: str, words: str | None
) -> None:
    sparse = real_logs.plan_of(
        "aligned0-rk3576",
        ("Total Weight Memory Size: 521.625KB", f"Total Weight Memory Size: {weights}"),
        ("-274/36864/36864", f"-274/{cycles}"),
    )

    def built(platform: str, model: Any, *, sparse_infer: bool) -> Any:
        plan = sparse if sparse_infer else real_logs.plan_of("dense-rk3576")
        return SimpleNamespace(log=SimpleNamespace(plan=plan))

    monkeypatch.setattr(OWN, "own_build", built)
    if words is None:
        OWN.test_sparse_is_not_slower(board("rk3576"), user_model(b""), record)
    else:
        with pytest.raises(ConformanceFailure, match=words):
            OWN.test_sparse_is_not_slower(board("rk3576"), user_model(b""), record)


# SPARSE-04


@pytest.mark.parametrize(("steps", "passes"), [(3, True), (4, False)])
def test_three_steps_are_the_limit(record: ItemRecord, steps: int, passes: bool) -> None:
    grid = np.random.default_rng(3).integers(-100, 100, (8, 10)).astype(np.float32) / 4

    def inference(model: Any, inputs: Any, *, sparse_infer: bool) -> list[Any]:
        moved = grid.copy()
        moved[2, 3] += steps / 4 if sparse_infer else 0
        return [moved]

    subject: Any = SimpleNamespace(samples=Samples((models.load("digits_cnn").calibration[:8],)))
    arguments = (board("rk3576"), inference, user_model(b""), subject, record)
    if passes:
        OWN.test_sparse_inference_changes_little(*arguments)
    else:
        with pytest.raises(ConformanceFailure, match="sparse_infer moves output 0 by 4 steps"):
            OWN.test_sparse_inference_changes_little(*arguments)


def test_outputs_in_float_are_compared_as_a_whole(record: ItemRecord) -> None:
    scores = np.random.default_rng(3).normal(size=(8, 40)).astype(np.float32)

    def inference(model: Any, inputs: Any, *, sparse_infer: bool) -> list[Any]:
        return [scores if sparse_infer else scores[::-1]]

    subject: Any = SimpleNamespace(samples=Samples((models.load("digits_cnn").calibration[:8],)))
    with pytest.raises(ConformanceFailure, match="cosine"):
        OWN.test_sparse_inference_changes_little(board("rk3576"), inference, user_model(b""), subject, record)
