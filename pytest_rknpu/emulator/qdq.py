"""A QDQ ONNX graph cut into layers: everything between DequantizeLinear and QuantizeLinear is one layer
(host side).

Operators that stand between two QuantizeLinear without one of their own (a Relu behind a convolution, say)
belong to the layer of the next QuantizeLinear. A float value that two layers read is computed in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from pytest_rknpu.errors import ModelError

Constant = npt.NDArray[np.generic]

SUPPORTED_OPERATORS = frozenset(
    {
        *("Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Concat", "Split", "Slice", "Pad"),
        *("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "Softmax"),
        *("Relu", "LeakyRelu", "PRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Identity"),
        *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Resize"),
    }
)

CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear"})


@dataclass(frozen=True)
class Quantised:
    """An activation as it is stored: int8, real = (stored - zero_point) * scale; ``name`` is
    QuantizeLinear's output.
    """

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int


@dataclass(frozen=True)
class Region:
    """One layer: nodes in order, the stored activations it reads, its constants, what it stores."""

    nodes: tuple[onnx.NodeProto, ...]
    reads: tuple[str, ...]
    constants: Mapping[str, Constant]
    stores: str

    @property
    def operators(self) -> str:
        """The operators without the conversions, ``Conv+Relu`` say; ``Requantise`` where there is none."""
        return (
            "+".join(node.op_type for node in self.nodes if node.op_type not in CONVERSIONS) or "Requantise"
        )


class QdqGraph:
    """A checked QDQ model. Raises ModelError from every method, with the node or tensor named."""

    def __init__(self, data: bytes) -> None:
        self.model = _checked(data)
        graph = self.model.graph
        self.constants: dict[str, Constant] = {c.name: numpy_helper.to_array(c) for c in graph.initializer}
        self.nodes = [node for node in graph.node if not self._take_constant(node)]
        self._order = {id(node): number for number, node in enumerate(self.nodes)}
        self._producer = {name: node for node in self.nodes for name in node.output if name}
        self._shapes = {
            value.name: _shape(value) for value in (*graph.value_info, *graph.input, *graph.output)
        }
        self._alias: dict[str, str] = {}
        self.inputs = [value.name for value in graph.input if value.name not in self.constants]
        self.outputs = [value.name for value in graph.output]

    def _take_constant(self, node: onnx.NodeProto) -> bool:
        if node.op_type != "Constant":
            return False
        values = [attribute for attribute in node.attribute if attribute.name == "value"]
        if not values:
            raise ModelError(f"Constant node {node.name!r} holds no tensor; only `value` is supported")
        self.constants[node.output[0]] = numpy_helper.to_array(values[0].t)
        return True

    def input_activation(self, name: str) -> Quantised:
        """The stored form of graph input ``name``: what its QuantizeLinear makes of it, or itself where it
        is int8.
        """
        readers = [node for node in self.nodes if name in node.input]
        if not readers:
            raise ModelError(f"input {name!r} is read by no node")
        for reader in readers:
            if reader.op_type not in CONVERSIONS:
                raise ModelError(
                    f"input {name!r} is read by {_called(reader)} without QuantizeLinear between"
                )
        forms = {self._parameters(reader) for reader in readers}
        if len(forms) != 1:
            raise ModelError(f"input {name!r} is quantised in {len(forms)} different ways")
        (scale, zero_point) = forms.pop()
        for reader in readers:
            if reader.op_type == "QuantizeLinear":
                self._alias[reader.output[0]] = name
        return Quantised(name, self.shape(name), scale, zero_point)

    def output_activation(self, name: str) -> str:
        """The stored activation that graph output ``name`` shows."""
        node = self._producer.get(name)
        if node is not None and self.reads_activation(node):
            self._require_same_grid(node)
            return self.stored(node.input[0])
        if node is not None and node.op_type == "QuantizeLinear":
            return self.stored(name)
        raise ModelError(
            f"output {name!r} is not quantised: it needs QuantizeLinear and DequantizeLinear before it"
        )

    def stored(self, name: str) -> str:
        """The one name of a stored activation (several QuantizeLinear of one input are one)."""
        return self._alias.get(name, name)

    def activation(self, node: onnx.NodeProto) -> Quantised:
        """What a QuantizeLinear node stores."""
        scale, zero_point = self._parameters(node)
        return Quantised(node.output[0], self.shape(node.output[0]), scale, zero_point)

    def quantisers(self) -> list[onnx.NodeProto]:
        """QuantizeLinear nodes of activations that layers compute, in the graph's order."""
        return [
            node
            for node in self.nodes
            if node.op_type == "QuantizeLinear"
            and node.input[0] not in self.constants
            and node.output[0] not in self._alias
        ]

    def region(self, quantiser: onnx.NodeProto) -> Region:
        """The layer that ends in ``quantiser``."""
        nodes: dict[int, onnx.NodeProto] = {id(quantiser): quantiser}
        reads: dict[str, None] = {}
        constants: dict[str, Constant] = {name: self.constants[name] for name in quantiser.input[1:] if name}
        waiting = [quantiser.input[0]]
        while waiting:
            name = waiting.pop()
            if not name:
                continue
            if name in self.constants:
                constants[name] = self.constants[name]
                continue
            node = self._producer.get(name)
            if node is None:
                raise ModelError(f"{name!r} reaches {_called(quantiser)} without QuantizeLinear between")
            self._refuse_unsupported(node)
            nodes[id(node)] = node
            activations, rest = self._split_inputs(node)
            reads.update(dict.fromkeys(activations))
            waiting.extend(rest)
        ordered = tuple(sorted(nodes.values(), key=lambda node: self._order[id(node)]))
        # In the order of use, so that equal models are packed into equal bytes.
        used = dict.fromkeys(self.stored(name) for node in ordered for name in node.input)
        return Region(ordered, tuple(name for name in used if name in reads), constants, quantiser.output[0])

    def _split_inputs(self, node: onnx.NodeProto) -> tuple[list[str], list[str]]:
        """(stored activations, other values) that ``node`` reads; only DequantizeLinear reads stored ones."""
        if self.reads_activation(node):
            self._require_same_grid(node)
            return [self.stored(node.input[0])], []
        return [], list(node.input)

    def reads_activation(self, node: onnx.NodeProto) -> bool:
        """Whether ``node`` dequantises a stored activation, not a constant."""
        return node.op_type == "DequantizeLinear" and node.input[0] not in self.constants

    def _require_same_grid(self, node: onnx.NodeProto) -> None:
        """A stored activation must be read with the scale and zero point with which it was written."""
        writer = self._producer.get(node.input[0])
        if writer is not None and writer.op_type != "QuantizeLinear":
            raise ModelError(f"{_called(node)} reads {_called(writer)}, which stores nothing")
        if writer is not None and self._parameters(writer) != self._parameters(node):
            raise ModelError(f"{_called(node)} has another scale or zero point than {_called(writer)}")

    def _refuse_unsupported(self, node: onnx.NodeProto) -> None:
        if node.op_type == "DequantizeLinear":
            return
        if node.op_type == "QuantizeLinear":
            raise ModelError(f"{_called(node)} feeds an operator without DequantizeLinear between")
        if node.op_type not in SUPPORTED_OPERATORS or node.domain not in {"", "ai.onnx"}:
            known = ", ".join(sorted(SUPPORTED_OPERATORS))
            raise ModelError(f"operator {_called(node)} is not supported by the emulator; it knows {known}")

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor; every dimension must be known."""
        shape = self._shapes.get(name)
        if not shape:
            raise ModelError(f"the shape of {name!r} is not known before the model runs; give it fixed sizes")
        return shape

    def _parameters(self, node: onnx.NodeProto) -> tuple[float, int]:
        """(scale, zero point in int8) of a QuantizeLinear or DequantizeLinear; uint8 is shifted by 128."""
        scale = self._single(node, 1)
        zero = self._single(node, 2) if len(node.input) > 2 and node.input[2] else np.zeros(1, np.uint8)
        if zero.dtype not in (np.dtype(np.int8), np.dtype(np.uint8)):
            raise ModelError(f"{_called(node)} makes {zero.dtype}; activations must be int8 or uint8")
        shift = 128 if zero.dtype == np.uint8 else 0
        return float(scale.item()), int(zero.item()) - shift

    def _single(self, node: onnx.NodeProto, position: int) -> Constant:
        value = self.constants.get(node.input[position])
        if value is None or value.size != 1:
            raise ModelError(f"{_called(node)}: an activation needs one constant scale and zero point")
        return value


def _checked(data: bytes) -> onnx.ModelProto:
    if not data:
        raise ModelError("the ONNX model is empty (0 bytes)")
    try:
        model = onnx.load_model_from_string(data)
        onnx.checker.check_model(model)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception as error:
        # protobuf, the checker and shape inference each raise types of their own.
        raise ModelError(f"not a sound ONNX model ({len(data)} bytes): {error}") from error


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """Dimensions, or None where one of them is not a fixed size."""
    sizes = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    return tuple(sizes) if sizes and all(size > 0 for size in sizes) else None


def _called(node: onnx.NodeProto) -> str:
    return f"{node.op_type} {node.name or node.output[0]!r}"
