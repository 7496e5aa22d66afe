"""ACC-01 for float16 builds: RKNN-Toolkit2 without quantisation, against the float model and beside int8."""

from __future__ import annotations

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.measure import Tolerance, judge_outputs
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.tolerances import DECLARED
from pytest_rknpu.session.simulator import simulated
from pytest_rknpu.toolchain import CompileOptions

# A float16 has 11 bits, some 66 dB. Measured with 2.5.0 on all five SoCs, worst sample of all models: cosine
# 0.9999999, 67.4 dB, 0.0029; about twice that is left, and 6 dB.
FLOAT16 = Tolerance(
    cosine_at_least=0.99999, sqnr_db_at_least=60.0, max_error_at_most=0.006, bias_at_most=0.002
)
SAMPLES = 16


@pytest.mark.requirement("ACC-01")
@pytest.mark.runtimes("simulator")
@pytest.mark.parametrize("name", sorted(DECLARED))
def test_float16_agrees_with_the_float_model(board: LiveBoard, record: ItemRecord, name: str) -> None:
    """The same samples as for int8, so that both distances from the float model stand side by side."""
    model = models.load(name)
    inputs = model.calibration[:SAMPLES]
    options = CompileOptions(target_platform=board.session.soc.toolkit_platform, calibration=None)
    actual = simulated(model.float_onnx, options, [inputs[:, None]], record.note)
    reference = run_onnx(model.float_onnx, inputs)
    problems = judge_outputs(reference, actual, [FLOAT16] * len(reference), record.measure)
    if problems:
        raise ConformanceFailure(f"{name} in float16: {'; '.join(problems)}")
