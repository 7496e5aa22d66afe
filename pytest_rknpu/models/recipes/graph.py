"""A float ONNX graph, written operator by operator.

Only operators that every RKNPU2 compiler and ONNX Runtime since 1.8 know are offered. Opset 13 is the first
with per-channel QuantizeLinear/DequantizeLinear; IR version 7 came with it, so that nothing newer is asked of
a reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 13
IR_VERSION = 7
PRODUCER = "pytest-rknpu"

Floats = NDArray[np.float32]


@dataclass
class GraphBuilder:
    """Collects the nodes and constants of one graph; every method returns the name of the tensor it made.

    Feature shapes are (channels, height, width); the batch is always 1 and ``finish`` adds it.
    """

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def _node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def _constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def convolution(
        self,
        name: str,
        source: str,
        weights: Floats,
        bias: Floats,
        *,
        stride: int = 1,
        groups: int = 1,
    ) -> str:
        """Convolution with "same" padding for odd kernels; weights (out, in / groups, height, width)."""
        pad_rows, pad_columns = weights.shape[2] // 2, weights.shape[3] // 2
        inputs = [
            source,
            self._constant(f"{name}.weight", weights.astype(np.float32)),
            self._constant(f"{name}.bias", bias.astype(np.float32)),
        ]
        return self._node(
            "Conv",
            inputs,
            name,
            kernel_shape=list(weights.shape[2:]),
            strides=[stride, stride],
            pads=[pad_rows, pad_columns, pad_rows, pad_columns],
            group=groups,
        )

    def relu(self, name: str, source: str) -> str:
        return self._node("Relu", [source], name)

    def add(self, name: str, first: str, second: str) -> str:
        return self._node("Add", [first, second], name)

    def concatenate(self, name: str, sources: list[str]) -> str:
        """Joins along the channels."""
        return self._node("Concat", sources, name, axis=1)

    def maximum_pool(self, name: str, source: str, size: int) -> str:
        return self._node("MaxPool", [source], name, kernel_shape=[size, size], strides=[size, size])

    def flatten(self, name: str, source: str) -> str:
        return self._node("Flatten", [source], name, axis=1)

    def dense(self, name: str, source: str, weights: Floats, bias: Floats) -> str:
        """Fully connected layer; weights (out, in)."""
        inputs = [
            source,
            self._constant(f"{name}.weight", weights.astype(np.float32)),
            self._constant(f"{name}.bias", bias.astype(np.float32)),
        ]
        return self._node("Gemm", inputs, name, transB=1)

    def finish(self, source: str, shape: tuple[int, ...], outputs: dict[str, tuple[int, ...]]) -> bytes:
        """The model as bytes; ``source`` is the float input's name, shapes are without the batch."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info(source, TensorProto.FLOAT, [1, *shape])],
            [helper.make_tensor_value_info(k, TensorProto.FLOAT, [1, *v]) for k, v in outputs.items()],
            self.constants,
        )
        return serialise(graph)


def serialise(graph: onnx.GraphProto) -> bytes:
    """A checked model around a graph, the same bytes on every machine."""
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name=PRODUCER
    )
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))
