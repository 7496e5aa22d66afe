"""The plain QDQ form that the emulator splits and that every toolkit of the last years reads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from pytest_rknpu import models

POOLS = {"MaxPool", "AveragePool", "GlobalAveragePool"}
OPERATORS = POOLS | {"Conv", "Relu", "Add", "Concat", "Gemm", "Reshape", "Flatten"}
NAMES = models.names()


def graph_of(content: bytes) -> onnx.GraphProto:
    return onnx.load_model_from_string(content).graph


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["float_onnx", "qdq_onnx"])
def test_only_old_and_plain_operators(name: str, form: str) -> None:
    model = onnx.load_model_from_string(getattr(models.load(name), form))
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    assert model.ir_version <= 8
    quantisers = {"QuantizeLinear", "DequantizeLinear"} if form == "qdq_onnx" else set()
    assert {node.op_type for node in model.graph.node} <= OPERATORS | quantisers
    assert len(model.graph.input) == 1
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


@pytest.mark.parametrize("name", NAMES)
def test_each_operator_stands_between_dequantise_and_quantise(name: str) -> None:
    graph = graph_of(models.load(name).qdq_onnx)
    constants = {constant.name for constant in graph.initializer}
    producers = {output: node for node in graph.node for output in node.output}
    assert graph.node[0].op_type == "QuantizeLinear"
    assert graph.node[0].input[0] == graph.input[0].name
    assert all(producers[output.name].op_type == "DequantizeLinear" for output in graph.output)
    for node in graph.node:
        if node.op_type in OPERATORS - {"Relu"}:
            assert {producers[i].op_type for i in node.input if i not in constants} == {"DequantizeLinear"}
        if node.op_type == "Relu":
            assert producers[node.input[0]].op_type in {"Conv", "Add", "Gemm"}
        if node.op_type == "QuantizeLinear" and node is not graph.node[0]:
            assert producers[node.input[0]].op_type in OPERATORS


@pytest.mark.parametrize("name", NAMES)
def test_activations_are_asymmetric_and_weights_symmetric_per_channel(name: str) -> None:
    graph = graph_of(models.load(name).qdq_onnx)
    values = {constant.name: numpy_helper.to_array(constant) for constant in graph.initializer}
    weights = 0
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in values:
            stored, scale, zero = (values[i] for i in node.input)
            assert stored.dtype == zero.dtype
            assert stored.dtype in (np.int8, np.int32)
            assert scale.shape == zero.shape == (stored.shape[0],)
            assert not zero.any()
            assert stored.dtype != np.int8 or stored.min() >= -127
            weights += stored.dtype == np.int8
        elif node.op_type in {"QuantizeLinear", "DequantizeLinear"}:
            assert values[node.input[1]].shape == values[node.input[2]].shape == ()
            assert values[node.input[2]].dtype == np.int8
    assert weights == sum(node.op_type in {"Conv", "Gemm"} for node in graph.node)


@pytest.mark.parametrize("name", NAMES)
def test_calibration_lies_on_the_grid_of_the_input(name: str) -> None:
    model = models.load(name)
    graph = graph_of(model.qdq_onnx)
    values = {constant.name: numpy_helper.to_array(constant) for constant in graph.initializer}
    scale, zero = (values[i].astype(np.float64) for i in graph.node[0].input[1:])
    stored = model.calibration / scale + zero
    assert np.array_equal(stored, np.round(stored))
    assert stored.min() >= -128
    assert stored.max() <= 127
