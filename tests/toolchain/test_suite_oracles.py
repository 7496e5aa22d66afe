"""The suites that read the build log turn red on bad input made by hand, and green on real logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from build_logs import stored
from suite_modules import suite

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import ItemRecord
from pytest_rknpu.inventory.model_table import ModelTable
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.prebuilt import Predicted, baseline_for
from pytest_rknpu.session import UserModel
from pytest_rknpu.session.builds import Build
from pytest_rknpu.toolchain import BuildLog, Compiled, CompileOptions, Plan
from pytest_rknpu.toolchain.cycles import cycles_by_layer
from pytest_rknpu.toolchain.log_rows import Cycles

NAME = "digits_cnn-int8-rk3588-2.5.0"
LOG, GRAPH = stored(NAME).log, stored(NAME).graph
BOARD = SimpleNamespace(board=Board(name="sim", soc="rk3588", runtime="simulator"))


def fresh() -> ItemRecord:
    return ItemRecord("test", (), 1)


@pytest.fixture
def record() -> ItemRecord:
    return fresh()


def build_with(plan: Plan, graph: object = GRAPH) -> Callable[[str], Build]:
    compiled = Compiled(Path("x"), "", Path("x"), None, "2.5.0", True)
    return lambda name: Build(compiled, BuildLog((plan,), "2.5.0", "2.5.0"), graph)  # type: ignore[arg-type]


def test_an_overlapping_plan_fails_mem_12() -> None:
    judge = suite("memory/test_memory_plan.py").test_no_two_live_tensors_share_memory
    judge(build_with(LOG.plan), fresh(), "digits_cnn", BOARD)
    reads = list(LOG.plan.reads)
    place = reads[0].placement
    # The input of layer 1 moves onto the output of layer 1.
    start = next(read for read in reads if read.id == 2).placement.start
    reads[0] = replace(reads[0], placement=replace(place, start=start, end=start + place.size))
    with pytest.raises(ConformanceFailure, match=r"digits_cnn, RKNN-Toolkit2 2\.5\.0: 'input' .*share"):
        judge(build_with(replace(LOG.plan, reads=tuple(reads))), fresh(), "digits_cnn", BOARD)


def test_a_wrong_total_fails_mem_12_and_no_graph_shows_nothing() -> None:
    judge = suite("memory/test_memory_plan.py").test_no_two_live_tensors_share_memory
    total = replace(LOG.plan.internal_total, bytes=LOG.plan.internal_total.bytes + 64)
    with pytest.raises(ConformanceFailure, match="internal size"):
        judge(build_with(replace(LOG.plan, internal_total=total)), fresh(), "digits_cnn", BOARD)
    with pytest.raises(Inconclusive, match="no graph"):
        judge(build_with(LOG.plan, None), fresh(), "digits_cnn", BOARD)


def test_a_plan_of_which_half_is_guessed_shows_nothing() -> None:
    judge = suite("memory/test_memory_plan.py").test_no_two_live_tensors_share_memory
    nameless = replace(GRAPH, nodes=(), inputs=())
    layers = tuple(replace(layer, name=f"x:{layer.id}") for layer in LOG.plan.layers)
    with pytest.raises(Inconclusive, match=r"digits_cnn: the writers of \d+ of \d+ tensors are unknown"):
        judge(build_with(replace(LOG.plan, layers=layers), nameless), fresh(), "digits_cnn", BOARD)


def own(**limits: object) -> UserModel:
    """A model of boards.toml with these limits."""
    return UserModel(ModelTable.model_validate({"name": "mine", "path": "net.onnx", **limits}))


@pytest.mark.parametrize(
    ("limits", "error", "words"),
    [
        ({"cpu_operators": 1}, None, ""),
        (
            {"cpu_operators": 0},
            ConformanceFailure,
            r"1 operators fell .*declared: at most 0: Reshape Reshape:",
        ),
        ({"cpu_operators": 0, "per_soc": {"rk3588": {"cpu_operators": 1}}}, None, ""),
        ({"cpu_operators": 1, "per_soc": {"rk3588": {"cpu_operators": 0}}}, ConformanceFailure, "at most 0"),
        ({}, pytest.skip.Exception, r"measured, not judged: mine for rk3588 .*\(1 fell to the CPU\)"),
    ],
)
def test_the_owner_of_a_model_says_how_many_operators_may_fall(
    limits: dict[str, object], error: type[BaseException] | None, words: str
) -> None:
    judge = suite("accuracy/test_cpu_operators.py").test_no_undeclared_operator_runs_on_the_cpu
    built = replace(build_with(LOG.plan)("mine"), own=own(**limits))
    if error is None:
        judge(BOARD, lambda name: built, fresh(), "mine")
    else:
        with pytest.raises(error, match=words):
            judge(BOARD, lambda name: built, fresh(), "mine")


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("memory/test_memory_plan.py", "test_no_two_live_tensors_share_memory"),
        ("accuracy/test_cpu_operators.py", "test_no_undeclared_operator_runs_on_the_cpu"),
        ("latency/test_predicted_cycles.py", "test_predicted_cycles_have_not_grown"),
        ("sparse/test_own_sparse_models.py", "test_pruned_layers_run_sparse"),
        ("sparse/test_own_sparse_models.py", "test_sparse_is_not_slower"),
    ],
)
def test_a_build_log_is_no_evidence_of_a_real_board(file: str, test: str) -> None:
    """It is the host's, whatever board there is: its results must not be called hardware."""
    marks = {mark.name: mark.args for mark in getattr(suite(file), test).pytestmark}
    assert marks["runtimes"] == ("simulator",)


def test_a_fall_back_to_the_cpu_fails_acc_06(record: ItemRecord) -> None:
    judge = suite("accuracy/test_cpu_operators.py").test_no_undeclared_operator_runs_on_the_cpu
    judge(BOARD, build_with(LOG.plan), record, "digits_cnn")
    assert any("Reshape" in note for note in record.notes)
    layers = [replace(row, target="CPU") if row.id in (1, 2) else row for row in LOG.plan.layers]
    named = rf"{layers[1].op_type} \(layer 1, .*{layers[2].op_type} \(layer 2, .*declared: Reshape"
    with pytest.raises(ConformanceFailure, match=named):
        judge(BOARD, build_with(replace(LOG.plan, layers=tuple(layers))), fresh(), "digits_cnn")
    # What is declared for one model is not for another.
    with pytest.raises(ConformanceFailure, match=r"Reshape \(layer 7, .*declared: none"):
        judge(BOARD, build_with(LOG.plan), fresh(), "probe_chain")


def test_grown_cycles_fail_lat_09() -> None:
    judge = suite("latency/test_predicted_cycles.py").test_predicted_cycles_have_not_grown
    judge(BOARD, build_with(LOG.plan), fresh(), "digits_cnn")
    layers = list(LOG.plan.layers)
    dearest = max(layers, key=lambda layer: layer.cycles.total)

    def with_factor(factor: float) -> Plan:
        cycles = dearest.cycles
        grown = Cycles(*(int(each * factor) for each in (cycles.ddr, cycles.npu, cycles.total)))
        layers[dearest.id] = replace(dearest, cycles=grown)
        return replace(LOG.plan, layers=tuple(layers))

    for factor in (1.005, 0.5):
        judge(BOARD, build_with(with_factor(factor)), fresh(), "digits_cnn")
    words = rf"2\.5\.0, not 2\.3\.2: .*total cycles grew from .*{dearest.name} \d+ -> \d+"
    with pytest.raises(ConformanceFailure, match=words):
        judge(BOARD, build_with(with_factor(1.2)), fresh(), "digits_cnn")


def test_a_baseline_of_another_model_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = suite("latency/test_predicted_cycles.py")
    other = Predicted("2.3.2", "another", baseline_for("digits_cnn", "rk3588", "2.5.0").layers)
    monkeypatch.setattr(module, "baseline_for", lambda *asked: other)
    with pytest.raises(Inconclusive, match="another version of the model"):
        module.test_predicted_cycles_have_not_grown(BOARD, build_with(LOG.plan), fresh(), "digits_cnn")


def test_the_stored_baseline_is_what_the_stored_log_says() -> None:
    """cycles.json and the logs of the tests were made apart."""
    found = baseline_for("digits_cnn", "rk3588", "2.5.0")
    assert found.toolkit_version == "2.3.2"
    assert found.layers == cycles_by_layer(stored("digits_cnn-int8-rk3588-2.3.2").log.plan)


PREPARATION = suite("accuracy/test_preparation.py")


@pytest.mark.parametrize("wrong", sorted(PREPARATION.PREPARATIONS))
def test_a_wrong_preparation_fails_acc_05_and_is_named(record: ItemRecord, wrong: str) -> None:
    samples, onnx = PREPARATION.pictures().samples, models.load("digits_cnn").float_onnx
    scores = run_onnx(onnx, PREPARATION.PREPARATIONS[wrong](samples))[0]
    with pytest.raises(ConformanceFailure, match=f"it fits: {wrong}$"):
        PREPARATION.judge_preparation(scores, samples, record.measure)


def test_the_right_preparation_passes_acc_05(record: ItemRecord) -> None:
    samples, onnx = PREPARATION.pictures().samples, models.load("digits_cnn").float_onnx
    scores = run_onnx(onnx, PREPARATION.normalise(samples))[0]
    noise = np.random.default_rng(1).uniform(-0.05, 0.05, scores.shape).astype(np.float32)
    PREPARATION.judge_preparation(scores + noise, samples, record.measure)


def test_pictures_that_tell_nothing_apart_show_nothing(
    record: ItemRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grey pictures with one mean for all channels: swapped channels would pass."""
    samples, onnx = PREPARATION.pictures().samples, models.load("digits_cnn").float_onnx
    grey = np.repeat(samples[:, :1], 3, axis=1)
    monkeypatch.setattr(PREPARATION, "MEAN", (128.0,) * 3)
    monkeypatch.setattr(PREPARATION, "DEVIATION", (64.0,) * 3)
    scores = run_onnx(onnx, PREPARATION.normalise(grey))[0]
    with pytest.raises(Inconclusive, match="red and blue swapped"):
        PREPARATION.judge_preparation(scores, grey, record.measure)


@pytest.mark.parametrize(
    ("by_files", "by_arrays", "without_swap", "error"),
    [
        (1, 1, 2, None),
        (1, 3, 2, ConformanceFailure),  # swapped twice, or never; or laid out in another way
        (1, 1, 1, Inconclusive),  # without the swap nothing changes
    ],
)
def test_a_channel_order_that_is_not_applied_once_fails_acc_05(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    by_files: float,
    by_arrays: float,
    without_swap: float,
    error: type[Exception] | None,
) -> None:
    def scores_of(options: CompileOptions, samples: object, note: object, layout: str) -> np.ndarray:
        return scores(by_files if options.calibration_files else by_arrays)

    def scores(value: float) -> np.ndarray:
        return np.full((24, 10), value, np.float32)

    monkeypatch.setattr(PREPARATION, "scores_of", scores_of)
    monkeypatch.setattr(PREPARATION, "unswapped", lambda *_: scores(without_swap))
    if error is None:
        PREPARATION.test_channel_order_and_layout_are_applied_once(BOARD, fresh(), tmp_path)
    else:
        with pytest.raises(error):
            PREPARATION.test_channel_order_and_layout_are_applied_once(BOARD, fresh(), tmp_path)


def test_a_build_that_is_not_float16_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-01 of float16 builds: what int8 gives is refused, what the float model gives is not."""
    module, model = suite("accuracy/test_float16.py"), models.load("digits_cnn")
    board = SimpleNamespace(session=SimpleNamespace(soc=SimpleNamespace(toolkit_platform="rk3588")))
    for onnx, passes in ((model.float_onnx, True), (model.qdq_onnx, False)):
        monkeypatch.setattr(
            module, "simulated", lambda _, __, inputs, ___, onnx=onnx: run_onnx(onnx, inputs[0][:, 0])
        )
        if passes:
            module.test_float16_agrees_with_the_float_model(board, fresh(), "digits_cnn")
        else:
            with pytest.raises(ConformanceFailure, match="digits_cnn in float16: output 0: cosine"):
                module.test_float16_agrees_with_the_float_model(board, fresh(), "digits_cnn")
