"""The float16 suite's tolerance refuses what is no float16."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.measure import judge_outputs
from pytest_rknpu.models.execute import run_onnx
from suites.accuracy.test_float16 import FLOAT16


@pytest.mark.parametrize("name", ["digits_cnn", "probe_chain"])
def test_int8_is_not_taken_for_float16(name: str) -> None:
    model = models.load(name)
    inputs = model.calibration[:4]
    reference, quantised = run_onnx(model.float_onnx, inputs), run_onnx(model.qdq_onnx, inputs)
    half = [output.astype(np.float16).astype(np.float32) for output in reference]
    assert judge_outputs(reference, half, [FLOAT16], lambda *_: None) == []
    assert judge_outputs(reference, quantised, [FLOAT16], lambda *_: None)
