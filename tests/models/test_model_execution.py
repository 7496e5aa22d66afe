"""Host references by ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from pytest_rknpu import models
from pytest_rknpu.errors import ModelError
from pytest_rknpu.models.execute import output_steps, run_onnx, run_onnx_inputs


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


@pytest.mark.parametrize("kind", ["INT64", "INT32", "UINT8", "BOOL", "FLOAT16", "DOUBLE"])
def test_inputs_have_the_type_of_the_graph(kind: str) -> None:
    """Data sets are float32; token numbers, masks and half floats are cast where nothing is lost."""
    declared = getattr(TensorProto, kind)
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    graph = helper.make_graph(
        nodes,
        "cast",
        [helper.make_tensor_value_info("x", declared, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    content, data = model.SerializeToString(), np.array([[0, 1], [1, 1]], np.float32)
    assert np.array_equal(run_onnx_inputs(content, [data])[0], data)
    assert np.array_equal(run_onnx_inputs(content, [data], ["x"])[0], data)
    if kind not in ("FLOAT16", "DOUBLE"):
        with pytest.raises(ModelError, match=r"input 'x' takes .*, and the data hold other numbers"):
            run_onnx_inputs(content, [data + np.float32(0.5)])
