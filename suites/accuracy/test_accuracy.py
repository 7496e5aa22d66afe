"""ACC-01 and ACC-02: what the board computes, against the float model and against the quantised one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Inference, ItemRecord, LiveBoard
from pytest_rknpu.measure import judge_outputs, judge_top1
from pytest_rknpu.models.execute import output_steps, run_onnx
from pytest_rknpu.models.tolerances import AGAINST_QUANTISED, DECLARED, in_output_units
from pytest_rknpu.toolchain import CompileOptions, simulate, toolkit_status

Floats = NDArray[np.float32]

MODELS = sorted(DECLARED)
# Enough to see a layer that rounds another way; each sample is judged.
QUANTISED_SAMPLES = 32


def inputs_of(model: models.Model) -> Floats:
    """Held-out pictures of a classifier; a probe's own calibration data: others would measure clipping."""
    declared = DECLARED[model.name]
    return (
        model.calibration if declared.top1_drop_at_most is None else models.load_labelled(model.name).inputs
    )


def require_none(problems: list[str]) -> None:
    """All problems of a comparison in one failure."""
    if problems:
        raise ConformanceFailure("; ".join(problems))


@pytest.mark.requirement("ACC-01")
@pytest.mark.parametrize("name", MODELS)
def test_board_agrees_with_the_float_model(inference: Inference, record: ItemRecord, name: str) -> None:
    """Cosine, SQNR, largest error, bias of each output, top-1 of a classifier: within what is declared."""
    model, declared = models.load(name), DECLARED[name]
    inputs = inputs_of(model)
    reference, actual = run_onnx(model.float_onnx, inputs), inference(model, inputs)
    problems = judge_outputs(reference, actual, declared.against_float, record.measure)
    if declared.top1_drop_at_most is not None:
        labels = models.load_labelled(name).labels
        problems += judge_top1(reference[0], actual[0], labels, declared.top1_drop_at_most, record.measure)
    require_none(problems)


def quantised_reference(board: LiveBoard, model: models.Model, inputs: Floats) -> list[Floats]:
    """The quantised model computed elsewhere: by ONNX Runtime (emulator), by the simulator (silicon)."""
    if board.board.runtime == "emulator":
        return run_onnx(model.qdq_onnx, inputs)
    status = toolkit_status()
    if status.version is None:
        pytest.skip(f"{status.reason}; install it with: {status.install_command}")
    options = CompileOptions(board.session.soc.toolkit_platform, model.calibration)
    return simulate(model.float_onnx, options, [sample[np.newaxis] for sample in inputs])


@pytest.mark.requirement("ACC-02")
@pytest.mark.parametrize("name", MODELS)
def test_board_agrees_with_the_quantised_model(
    board: LiveBoard, inference: Inference, record: ItemRecord, name: str
) -> None:
    """Within one step of the output's grid: what quantisation costs is not in the difference."""
    if board.board.runtime == "simulator":
        name = board.board.name
        pytest.skip(f"{name} is the simulator itself: there is no second quantised model to compare with")
    model = models.load(name)
    inputs = inputs_of(model)[:QUANTISED_SAMPLES]
    reference, actual = quantised_reference(board, model, inputs), inference(model, inputs)
    tolerances = [in_output_units(AGAINST_QUANTISED, step) for step in output_steps(model.qdq_onnx)]
    require_none(judge_outputs(reference, actual, tolerances, record.measure))
