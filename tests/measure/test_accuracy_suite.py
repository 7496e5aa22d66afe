"""The oracles of suites/accuracy fail on what they are there to catch (ACC-01, ACC-02).

The suite's own test functions run here with a stand-in for the board: ONNX Runtime, used right and wrongly.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.measure import MemoryLayout
from pytest_rknpu.models.execute import output_steps, run_onnx
from pytest_rknpu.models.tolerances import DECLARED
from pytest_rknpu.session import Subject, UserModels, subject_of
from pytest_rknpu.verdict import ItemRecord

Floats = NDArray[np.float32]
Board_ = Callable[[models.Model, Floats], list[Floats]]
SUITE = Path(__file__).parents[2] / "suites" / "accuracy" / "test_accuracy.py"


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    spec = importlib.util.spec_from_file_location("accuracy_suite_under_test", SUITE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def record() -> ItemRecord:
    return ItemRecord("suites/accuracy", ("ACC-01",), 0)


EMULATOR = SimpleNamespace(board=Board(name="stand-in", soc="rk3588", runtime="emulator"))
SIMULATOR = SimpleNamespace(board=Board(name="sim", soc="rk3588", runtime="simulator"))


def of(name: str) -> Subject:
    return subject_of(name, UserModels())


def as_inference(board: Board_) -> Callable[[models.Model, tuple[Floats, ...]], list[Floats]]:
    """As the fixture `inference` gives it: an array for each input."""
    return lambda model, inputs: board(model, inputs[0])


def quantised(model: models.Model, inputs: Floats) -> list[Floats]:
    """A board that is right."""
    return run_onnx(model.qdq_onnx, inputs)


def normalised_twice(model: models.Model, inputs: Floats) -> list[Floats]:
    """Mean 128 and deviation 64 are in the inputs already; here they are applied again."""
    return quantised(model, (inputs - 128) / 64)


def deviation_twice(model: models.Model, inputs: Floats) -> list[Floats]:
    return quantised(model, inputs / 64)


def channels_swapped(model: models.Model, inputs: Floats) -> list[Floats]:
    """BGR instead of RGB."""
    return quantised(model, inputs[:, ::-1])


def rows_for_columns(model: models.Model, inputs: Floats) -> list[Floats]:
    return quantised(model, inputs.swapaxes(2, 3))


def stale_frame(model: models.Model, inputs: Floats) -> list[Floats]:
    """Each output is that of the input before."""
    return [np.roll(output, 1, axis=0) for output in quantised(model, inputs)]


def one_sample_broken(model: models.Model, inputs: Floats) -> list[Floats]:
    outputs = quantised(model, inputs)
    outputs[0][len(inputs) // 2] = outputs[0][0][::-1]
    return outputs


def halved(model: models.Model, inputs: Floats) -> list[Floats]:
    """A wrong scale of the output: neither the cosine nor top-1 sees it."""
    return [output / 2 for output in quantised(model, inputs)]


def shifted(model: models.Model, inputs: Floats) -> list[Floats]:
    """A wrong zero point of the output."""
    return [output + 0.6 for output in quantised(model, inputs)]


@pytest.mark.parametrize(
    "board",
    [
        normalised_twice,
        deviation_twice,
        channels_swapped,
        rows_for_columns,
        stale_frame,
        one_sample_broken,
        halved,
        shifted,
    ],
)
def test_a_wrong_board_fails(suite: ModuleType, record: ItemRecord, board: Board_) -> None:
    with pytest.raises(ConformanceFailure, match=r"declared.*elements differ by more than.*cache lines"):
        suite.test_board_agrees_with_the_float_model(as_inference(board), record, of("digits_cnn"), layouts)
    assert {"output 0 cosine", "top-1"} <= {measurement.name for measurement in record.measurements}


def layouts(subject: Subject, outputs: list[np.ndarray]) -> list[MemoryLayout]:
    """As of a board that stores int8 in atoms of 16."""
    return [MemoryLayout(16, 1) for _ in outputs]


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_a_right_board_passes_and_is_measured(suite: ModuleType, record: ItemRecord, name: str) -> None:
    suite.test_board_agrees_with_the_float_model(as_inference(quantised), record, of(name), layouts)
    figures = {measurement.name for measurement in record.measurements}
    assert {f"output 0 {n}" for n in ("compared", "cosine", "sqnr", "max_error", "bias")} <= figures
    assert ("top-1" in figures) == (name == "digits_cnn")


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_quantised_reference(suite: ModuleType, record: ItemRecord, name: str) -> None:
    suite.test_board_agrees_with_the_quantised_model(
        EMULATOR, as_inference(quantised), record, of(name), layouts
    )


@pytest.mark.parametrize(("steps", "passes"), [(1, True), (2, False)])
def test_one_step_is_the_limit(suite: ModuleType, record: ItemRecord, steps: int, passes: bool) -> None:
    def off(model: models.Model, inputs: Floats) -> list[Floats]:
        outputs = quantised(model, inputs)
        outputs[0][3].flat[5] += steps * output_steps(model.qdq_onnx)[0]
        return outputs

    def judge() -> None:
        suite.test_board_agrees_with_the_quantised_model(
            EMULATOR, as_inference(off), record, of("digits_cnn"), layouts
        )

    if passes:
        judge()
    else:
        with pytest.raises(ConformanceFailure, match="largest error"):
            judge()


def test_the_simulator_is_not_compared_with_itself(suite: ModuleType, record: ItemRecord) -> None:
    with pytest.raises(pytest.skip.Exception, match="sim is the simulator itself"):
        suite.test_board_agrees_with_the_quantised_model(
            SIMULATOR, as_inference(quantised), record, of("digits_cnn"), layouts
        )


def answer(outputs: Callable[[list[Floats]], list[Floats]]) -> Board_:
    return lambda model, inputs: outputs(quantised(model, inputs))


@pytest.mark.parametrize(
    ("board", "error", "words"),
    [
        (answer(lambda o: [np.full_like(o[0], 3)]), Inconclusive, "mistrusted: the output is constant"),
        (answer(lambda o: [np.zeros_like(o[0])]), Inconclusive, "mistrusted: the output is all zero"),
        (answer(lambda o: [np.minimum(o[0], -1.5)]), Inconclusive, "mistrusted: the output is saturated"),
        (answer(lambda o: [np.full_like(o[0], np.nan)]), ConformanceFailure, "not finite"),
        (answer(lambda o: [o[0][:0]]), ConformanceFailure, "shape"),
        (answer(lambda o: [o[0][:, :9]]), ConformanceFailure, "shape"),
        (answer(lambda o: []), ConformanceFailure, "0 outputs"),
        (answer(lambda o: [o[0], o[0]]), ConformanceFailure, "2 outputs"),
    ],
)
def test_outputs_that_cannot_be_judged(
    suite: ModuleType, record: ItemRecord, board: Board_, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        suite.test_board_agrees_with_the_float_model(as_inference(board), record, of("digits_cnn"), layouts)


def test_no_samples_are_an_error(suite: ModuleType, record: ItemRecord) -> None:
    def empty(*_: Any) -> list[Floats]:
        return [np.zeros((0, 10), np.float32)]

    digits = of("digits_cnn")
    nothing = replace(digits, samples=digits.samples.first(0), _float_outputs=lambda _: (empty(), "nobody"))
    with pytest.raises(HarnessError, match="nothing was compared"):
        suite.test_board_agrees_with_the_float_model(empty, record, nothing, layouts)


def test_lost_top1_is_named(suite: ModuleType, record: ItemRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits of the outputs out of the way, top-1 alone decides: 5 of 400 are too many, 4 are not."""
    labelled = models.load_labelled("digits_cnn")

    def wrong_about(count: int) -> Board_:
        def board(model: models.Model, inputs: Floats) -> list[Floats]:
            outputs = run_onnx(model.float_onnx, inputs)
            right = np.flatnonzero(outputs[0].argmax(axis=1) == labelled.labels)[:count]
            outputs[0][right] = np.roll(outputs[0][right], 1, axis=1)
            return outputs

        return board

    def nothing(*_: Any) -> list[str]:
        return []

    monkeypatch.setattr(suite, "judge_outputs", nothing)
    suite.test_board_agrees_with_the_float_model(
        as_inference(wrong_about(4)), record, of("digits_cnn"), layouts
    )
    record.measurements.clear()
    with pytest.raises(ConformanceFailure, match="top-1 is 394 of 400"):
        suite.test_board_agrees_with_the_float_model(
            as_inference(wrong_about(5)), record, of("digits_cnn"), layouts
        )
