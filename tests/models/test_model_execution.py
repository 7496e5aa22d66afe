"""Host references by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ModelError
from pytest_rknpu.models.execute import output_steps, run_onnx


def test_outputs_of_a_qdq_model_lie_on_their_grid() -> None:
    model = models.load("digits_cnn")
    (output,) = run_onnx(model.qdq_onnx, model.calibration[:5])
    assert output.shape == (5, 10)
    assert output.dtype == np.float32
    (step,) = output_steps(model.qdq_onnx)
    assert np.allclose(output / step, np.round(output / step), atol=1e-4)
    assert output_steps(models.load("probe_pointwise").qdq_onnx) == [1 / 64]


def test_a_float_model_has_no_steps() -> None:
    with pytest.raises(ModelError, match="not quantised"):
        output_steps(models.load("digits_cnn").float_onnx)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ModelError, match="ONNX Runtime refuses"):
        run_onnx(b"no model", np.zeros((1, 1, 1, 1), np.float32))
