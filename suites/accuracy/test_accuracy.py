"""ACC-01 and ACC-02: what the board computes, against the float model and against the quantised one."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Inference, ItemRecord, LiveBoard
from pytest_rknpu.measure import (
    MemoryLayout,
    Tolerance,
    count_top1,
    judge_outputs,
    judge_top1,
    locate_violations,
)
from pytest_rknpu.measure.grids import int8_step
from pytest_rknpu.models.execute import output_steps, run_onnx
from pytest_rknpu.models.tolerances import AGAINST_QUANTISED, DECLARED, in_output_units
from pytest_rknpu.models.user_data import Samples
from pytest_rknpu.session import Subject, UserModel, scores_of
from pytest_rknpu.session.user_inference import simulate_user_model
from pytest_rknpu.toolchain import CompileOptions, simulate, toolkit_status

Floats = NDArray[np.float32]
LayoutsOf = Callable[[Subject, list[Floats]], list[MemoryLayout]]

MODELS = sorted(DECLARED)
# Enough to see a layer that rounds another way; each sample is judged.
QUANTISED_SAMPLES = 32
# Outputs of these data types lie on a grid, so that a difference can be counted in steps.
ON_A_GRID = ("w8a8", "prequantised")


def require_none(problems: list[str]) -> None:
    """All problems of a comparison in one failure."""
    if problems:
        raise ConformanceFailure("; ".join(problems))


@pytest.mark.requirement("ACC-01")
@pytest.mark.needs("arithmetic")
@pytest.mark.models(*MODELS)
def test_board_agrees_with_the_float_model(
    inference: Inference, record: ItemRecord, subject: Subject, layouts: LayoutsOf
) -> None:
    """Cosine, SQNR, largest error, bias of each output, top-1 of a classifier: within what is declared."""
    actual = inference(subject.model, subject.samples.inputs)
    reference, computed_by = subject.float_outputs(subject.samples)
    record.note(f"reference: {computed_by}")
    require_trained(reference, subject)
    tolerances = subject.tolerances_for(len(reference))
    problems = judge_outputs(reference, actual, tolerances, record.measure)
    if problems:
        problems += locate_violations(reference, actual, tolerances, layouts(subject, reference))
    if subject.top1_drop is not None:
        expected, found = scores_of(reference, subject), scores_of(actual, subject)
        problems += judge_top1(expected, found, subject.labels, subject.top1_drop, record.measure)
    require_none(problems)
    if not subject.declares:
        skip_as_measured(subject, record)


def skip_as_measured(subject: Subject, record: ItemRecord) -> None:
    """Nothing was declared, so nothing was judged."""
    figures = ", ".join(
        f"{m.name} {m.value:.6g}" if isinstance(m.value, float) else f"{m.name} {m.value}"
        for m in record.measurements
    )
    pytest.skip(
        f'measured, not judged: [[model]] "{subject.name}" declares neither tolerances nor top1_drop '
        f"({figures})"
    )


def require_trained(outputs: list[Floats], subject: Subject) -> None:
    """The float model has to be as good as its owner says, else it is fed with something wrong."""
    if subject.float_top1 is None or subject.labels is None:
        return
    reached = count_top1(scores_of(outputs, subject), subject.labels).share
    if reached < subject.float_top1:
        raise Inconclusive(
            f"mistrusted: the float model itself gets {reached:.1%} of {subject.name}'s labels right, "
            f"declared: {subject.float_top1:.1%}; see that mean, std, layout, channel order are the model's"
        )


def quantised_reference(
    board: LiveBoard, subject: Subject, samples: Samples
) -> tuple[list[Floats], list[Tolerance]]:
    """The quantised model computed elsewhere, by ONNX Runtime (emulator) or by the simulator (silicon), and
    how far the board may be from it."""
    model, emulated = subject.model, board.board.runtime == "emulator"
    if not emulated:
        require_toolkit()
    if isinstance(model, UserModel):
        outputs = (
            model.float_outputs(samples.inputs)[0]
            if emulated
            else simulate_user_model(board.board.platform, model, samples.inputs)
        )
        return outputs, [own_tolerance(model, output) for output in outputs]
    if emulated:
        outputs = run_onnx(model.qdq_onnx, samples.inputs[0])
    else:
        options = CompileOptions(board.board.platform, model.calibration)
        outputs = simulate(model.float_onnx, options, [row[np.newaxis] for row in samples.inputs[0]])
    return outputs, [in_output_units(AGAINST_QUANTISED, step) for step in output_steps(model.qdq_onnx)]


def own_tolerance(model: UserModel, reference: Floats) -> Tolerance:
    """One step of the grid that the reference shows. Without a grid (a last layer in float) only that both
    point the same way."""
    step = int8_step(reference) if model.table.built_dtype in ON_A_GRID else None
    if step is not None:
        return in_output_units(AGAINST_QUANTISED, step)
    return Tolerance(AGAINST_QUANTISED.cosine_at_least, AGAINST_QUANTISED.sqnr_db_at_least, inf, inf)


def require_toolkit() -> None:
    """Skip with the install command where RKNN-Toolkit2 is missing."""
    status = toolkit_status()
    if status.version is None:
        pytest.skip(f"{status.reason}; install it with: {status.install_command}")


@pytest.mark.requirement("ACC-02")
@pytest.mark.needs("arithmetic")
@pytest.mark.models(*MODELS)
def test_board_agrees_with_the_quantised_model(
    board: LiveBoard, inference: Inference, record: ItemRecord, subject: Subject, layouts: LayoutsOf
) -> None:
    """Within one step of the output's grid: what quantisation costs is not in the difference."""
    if board.board.runtime == "simulator":
        name = board.board.name
        pytest.skip(f"{name} is the simulator itself: there is no second quantised model to compare with")
    samples = subject.samples.first(QUANTISED_SAMPLES)
    actual = inference(subject.model, samples.inputs)
    reference, tolerances = quantised_reference(board, subject, samples)
    problems = judge_outputs(reference, actual, tolerances, record.measure)
    if problems:
        problems += locate_violations(reference, actual, tolerances, layouts(subject, reference))
    require_none(problems)
