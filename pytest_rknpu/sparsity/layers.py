"""The layers of an ONNX model that have weights, each with its weights as (Cout, Cin, ...)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from pytest_rknpu.errors import ModelError

#: Operators whose second input may be constant weights.
_HAS_WEIGHTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class Layer:
    """A layer with constant weights. ``type`` is in the words of the guide's whitelist.

    ``shape`` is (Cout, Cin, ...); for a grouped convolution Cin is that of one group. ``tensor`` is the name
    of the constant; where ``transposed``, it holds (Cin, Cout, ...).
    """

    name: str
    type: str
    shape: tuple[int, ...]
    groups: int
    dtype: str
    tensor: str
    transposed: bool


class Graph:
    """An ONNX model opened for its weights.

    ModelError: the bytes are no ONNX model, or weights lie outside the file.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self.model = onnx.load_model_from_string(content)
        except DecodeError as error:
            raise ModelError(f"no ONNX model ({len(content)} bytes): {error}") from error
        if not self.model.graph.node:
            raise ModelError(f"the ONNX model of {len(content)} bytes has no nodes")
        graph = self.model.graph
        self._tensors = {tensor.name: tensor for tensor in graph.initializer}
        self._tensors |= {name: tensor for node in graph.node for name, tensor in _constants_of(node)}
        # In a QDQ model the weights are a constant that DequantizeLinear reads.
        self._quantised = {
            node.output[0]: node.input[0]
            for node in graph.node
            if node.op_type == "DequantizeLinear" and node.input[0] in self._tensors
        }

    def layers(self) -> tuple[Layer, ...]:
        """The layers in the graph's order; those whose weights are computed in the graph are no layers."""
        return tuple(self._layers())

    def readers(self, tensor: str) -> int:
        """How many inputs read a constant."""
        return sum(name == tensor for node in self.model.graph.node for name in node.input)

    def weights(self, layer: Layer) -> NDArray[Any]:
        """A copy of the weights, as ``layer.shape``. ModelError: they lie outside the file."""
        stored = self._array(layer.tensor)
        return stored.swapaxes(0, 1).copy() if layer.transposed else stored.copy()

    def replace(self, layer: Layer, weights: NDArray[Any]) -> None:
        """Puts weights of the same shape in the place of a layer's own."""
        stored = weights.swapaxes(0, 1) if layer.transposed else weights
        tensor = self._tensors[layer.tensor]
        tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(stored), tensor.name))

    def content(self) -> bytes:
        """The model as bytes."""
        return bytes(self.model.SerializeToString(deterministic=True))

    def _layers(self) -> Iterator[Layer]:
        for number, node in enumerate(self.model.graph.node):
            if node.op_type not in _HAS_WEIGHTS:
                continue
            name = self._quantised.get(node.input[1], node.input[1])
            tensor = self._tensors.get(name)
            if tensor is None or len(tensor.dims) < 2 or 0 in tensor.dims:
                continue
            transposed = _transposed(node)
            shape = tuple(tensor.dims)
            if transposed:
                shape = (shape[1], shape[0], *shape[2:])
            yield Layer(
                node.name or node.output[0] or f"node {number}",
                _type(node, len(shape)),
                shape,
                _attribute(node, "group", 1),
                TensorProto.DataType.Name(tensor.data_type).lower(),
                name,
                transposed,
            )

    def _array(self, name: str) -> NDArray[Any]:
        tensor = self._tensors[name]
        if tensor.data_location == TensorProto.EXTERNAL:
            raise ModelError(f"the weights {name!r} lie outside the ONNX file; save it as one file")
        array: NDArray[Any] = numpy_helper.to_array(tensor)
        return array


def _constants_of(node: onnx.NodeProto) -> Iterator[tuple[str, TensorProto]]:
    """The tensor that a Constant node holds, by its name."""
    if node.op_type == "Constant":
        yield from (
            (node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value"
        )


def _transposed(node: onnx.NodeProto) -> bool:
    """Whether the weights are stored as (Cin, Cout, ...)."""
    if node.op_type == "Gemm":
        return not _attribute(node, "transB", 0)
    return node.op_type in {"MatMul", "ConvTranspose"}


def _type(node: onnx.NodeProto, dimensions: int) -> str:
    """Conv1d, Conv2d, ConvTranspose2d, Linear: the guide speaks of torch's classes."""
    if node.op_type in {"Gemm", "MatMul"}:
        return "Linear" if dimensions == 2 else "batched MatMul"
    return f"{node.op_type}{dimensions - 2}d"


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    found = [attribute for attribute in node.attribute if attribute.name == name]
    return int(helper.get_attribute_value(found[0])) if found else default
