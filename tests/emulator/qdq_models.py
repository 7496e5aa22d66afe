"""Small QDQ models made with onnx.helper, for the emulator's tests."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]


class Graph:
    """Builds a QDQ graph operator by operator; activations are named by the operator's result.

    ``unsigned`` stores activations as uint8, with zero points shifted by 128: the same model otherwise.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        scale: float = 1 / 32,
        zero: int = -9,
        unsigned: bool = False,
        seed: int = 1,
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.unsigned = unsigned
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
        self.grids: dict[str, tuple[float, int]] = {}
        self.channels = {"x": shape[1]}
        self.quantise("x", "x", scale, zero)

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def quantise(self, source: str, name: str, scale: float, zero: int) -> str:
        self.grids[name] = (scale, zero)
        stored = np.uint8 if self.unsigned else np.int8
        self.constant(f"{name}.scale", scale)
        self.constant(f"{name}.zero", zero + 128 if self.unsigned else zero, stored)
        self.nodes.append(
            helper.make_node("QuantizeLinear", [source, f"{name}.scale", f"{name}.zero"], [f"{name}.q"])
        )
        return name

    def dequantised(self, name: str, target: str | None = None) -> str:
        result = target or f"{name}.f{len(self.nodes)}"
        self.nodes.append(
            helper.make_node("DequantizeLinear", [f"{name}.q", f"{name}.scale", f"{name}.zero"], [result])
        )
        return result

    def operator(
        self,
        kind: str,
        name: str,
        sources: list[str],
        parameters: tuple[str, ...] = (),
        *,
        scale: float = 1 / 16,
        zero: int = 3,
        relu: bool = False,
        **attributes: Any,
    ) -> str:
        """DequantizeLinear of each source, the operator (and Relu), QuantizeLinear."""
        inputs = [self.dequantised(source) for source in sources]
        self.nodes.append(helper.make_node(kind, [*inputs, *parameters], [f"{name}.r"], **attributes))
        result = f"{name}.r"
        if relu:
            self.nodes.append(helper.make_node("Relu", [result], [f"{name}.relu"]))
            result = f"{name}.relu"
        return self.quantise(result, name, scale, zero)

    def weights(self, name: str, shape: tuple[int, ...], source: str) -> tuple[str, str]:
        """int8 weights per output channel and an int32 bias with the product of both scales, dequantised."""
        channels = shape[0]
        scales = (self.random.uniform(0.5, 1.0, channels) / 655).astype(np.float32)
        # Seven bits: processors without VNNI add two products of eight bits in 16 bits, which saturates.
        self.constant(f"{name}.w.q", self.random.integers(-64, 65, shape), np.int8)
        self.constant(f"{name}.w.scale", scales)
        self.constant(f"{name}.w.zero", np.zeros(channels), np.int8)
        self.constant(f"{name}.b.q", self.random.integers(-2000, 2001, channels), np.int32)
        self.constant(f"{name}.b.scale", scales * np.float32(self.grids[source][0]))
        self.constant(f"{name}.b.zero", np.zeros(channels), np.int32)
        for part in ("w", "b"):
            parameters = [f"{name}.{part}.{field}" for field in ("q", "scale", "zero")]
            self.nodes.append(helper.make_node("DequantizeLinear", parameters, [f"{name}.{part}"], axis=0))
        return f"{name}.w", f"{name}.b"

    def conv(
        self,
        name: str,
        source: str,
        channels: int,
        kernel: int = 3,
        *,
        groups: int = 1,
        relu: bool = False,
        **more: Any,
    ) -> str:
        shape = (channels, self.channels[source] // groups, kernel, kernel)
        pads = [kernel // 2] * 4
        self.operator(
            "Conv",
            name,
            [source],
            self.weights(name, shape, source),
            relu=relu,
            group=groups,
            pads=pads,
            **more,
        )
        self.channels[name] = channels
        return name

    def keep(self, name: str, source: str) -> str:
        """Note that ``name`` has the channels of ``source``."""
        self.channels[name] = self.channels[source]
        return name

    def finish(self, *outputs: tuple[str, tuple[int, ...]]) -> bytes:
        """The model's bytes; ``outputs`` are (activation, shape), shown as ``<activation>.out``."""
        shown = []
        for name, shape in outputs:
            self.dequantised(name, f"{name}.out")
            shown.append(helper.make_tensor_value_info(f"{name}.out", TensorProto.FLOAT, shape))
        graph = helper.make_graph(self.nodes, "test", self.inputs, shown, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(model.SerializeToString())


@lru_cache
def one_convolution(channels: int = 16, size: int = 16) -> bytes:
    """A 1x1 convolution: each pixel of the output depends on that pixel of the input alone."""
    graph = Graph((1, channels, size, size))
    graph.conv("c", "x", channels, 1)
    return graph.finish(("c", (1, channels, size, size)))


@lru_cache
def chain(*, unsigned: bool = False) -> bytes:
    """Convolution + Relu, depthwise with stride, 1x1, residual Add, convolution: a plan with reuse."""
    graph = Graph((1, 16, 16, 16), unsigned=unsigned)
    graph.conv("a", "x", 32, relu=True)
    graph.conv("b", "a", 32, groups=32, strides=[2, 2])
    graph.conv("c", "b", 32, 1)
    graph.keep(graph.operator("Add", "d", ["b", "c"]), "b")
    graph.conv("e", "d", 16)
    return graph.finish(("e", (1, 16, 8, 8)))


@lru_cache
def odd_rows(channels: int = 3, width: int = 20) -> bytes:
    """Rows that no alignment divides, and few channels: a native input in NHWC with padded rows."""
    graph = Graph((1, channels, 10, width))
    graph.conv("a", "x", 24, relu=True)
    graph.conv("b", "a", 8)
    return graph.finish(("b", (1, 8, 10, width)))


@lru_cache
def branches() -> bytes:
    """Two outputs, Concat, MaxPool, AveragePool: the first output is read by later layers too."""
    graph = Graph((1, 4, 16, 16))
    graph.conv("a", "x", 16, relu=True)
    graph.conv("b", "x", 8, 1)
    graph.operator("Concat", "c", ["a", "b"], axis=1)
    graph.channels["c"] = 24
    graph.operator("MaxPool", "d", ["c"], kernel_shape=[2, 2], strides=[2, 2])
    graph.operator("AveragePool", "e", ["d"], kernel_shape=[2, 2], strides=[2, 2])
    return graph.finish(("c", (1, 24, 16, 16)), ("e", (1, 24, 4, 4)))


@lru_cache
def classifier() -> bytes:
    """Global pooling, Flatten, Gemm, Softmax: outputs that have not four dimensions."""
    graph = Graph((1, 1, 8, 8))
    graph.conv("a", "x", 16, relu=True)
    graph.operator("GlobalAveragePool", "b", ["a"], scale=1 / 64)
    graph.operator("Flatten", "c", ["b"], scale=1 / 64)
    graph.operator("Gemm", "d", ["c"], graph.weights("d", (10, 16), "c"), transB=1, scale=1 / 64)
    graph.operator("Softmax", "e", ["d"], axis=1, scale=1 / 2048, zero=-128)
    return graph.finish(("d", (1, 10)), ("e", (1, 10)))


@lru_cache
def many_operators() -> bytes:
    """Operators that the others leave out, float constants among them."""
    graph = Graph((1, 8, 8, 8))
    graph.operator("Mul", "a", ["x"], (graph.constant("factor", graph.random.uniform(0, 2, (1, 8, 1, 1))),))
    graph.operator("Sigmoid", "b", ["a"], scale=1 / 256, zero=-128)
    graph.operator("Mul", "c", ["a", "b"])
    limits = (graph.constant("low", 0.0), graph.constant("high", 6.0))
    graph.operator("Clip", "d", ["c"], limits, scale=6 / 255, zero=-128)
    graph.operator("Transpose", "e", ["d"], perm=[0, 1, 3, 2], scale=6 / 255, zero=-128)
    shape = (graph.constant("shape", [1, 4, 16, 8], np.int64),)
    graph.operator("Reshape", "f", ["e"], shape, scale=6 / 255, zero=-128)
    graph.operator("Sub", "g", ["f", "f"])
    graph.operator("Concat", "h", ["f", "g"], axis=1)
    return graph.finish(("h", (1, 8, 16, 8)))


ALL = {
    "one_convolution": one_convolution,
    "chain": chain,
    "odd_rows": odd_rows,
    "branches": branches,
    "classifier": classifier,
    "many_operators": many_operators,
}
