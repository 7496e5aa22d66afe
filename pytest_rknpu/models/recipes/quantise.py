"""Post-training quantisation of a float graph into plain QDQ form.

Each operator becomes DequantizeLinear -> operator (-> Relu) -> QuantizeLinear, the form that ONNX Runtime
fuses and that the emulator splits into layers. Activations are asymmetric int8 per tensor, weights symmetric
int8 per output channel, biases int32 with the product of both scales: the arithmetic that RKNN names w8a8
with method "channel".

onnxruntime.quantization would do much of this, but it needs ml_dtypes, which the versions that RKNN-Toolkit2
pins do not bring along, and its scales carry the last bit of the machine's float kernels into the file. Here
scales are rounded up to a coarse grid, so that every machine writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from pytest_rknpu.models.recipes.graph import Floats, serialise

#: Operators that only move or select values: their result keeps the scale of what goes in.
KEEPS_SCALE = frozenset({"MaxPool", "Flatten", "Reshape"})
LOWEST, HIGHEST = -128, 127
LARGEST_BIAS = 2**30
SMALLEST_SCALE = 2.0**-30


@dataclass(frozen=True)
class Grid:
    """Affine int8 grid: real = (stored - zero_point) * scale."""

    scale: float
    zero_point: int


def power_of_two(scale: float) -> float:
    """The next power of two: float32 then computes int8 layers exactly, in any order of summation."""
    return float(2.0 ** np.ceil(np.log2(scale)))


def eleven_bits(scale: float) -> float:
    """The next number with eleven significant bits: drops what differs between float kernels."""
    unit = 2.0 ** (np.floor(np.log2(scale)) - 10)
    return float(np.ceil(scale / unit) * unit)


Rounding = Callable[[float], float]


def grid_of(lowest: float, highest: float, rounding: Rounding) -> Grid:
    """The grid that covers [lowest, highest] and zero."""
    lowest, highest = min(lowest, 0.0), max(highest, 0.0)
    scale = rounding((highest - lowest) / (HIGHEST - LOWEST))
    # Centred, so that what the rounding of the scale adds to the range is shared by both ends.
    centre = -0.5 - (lowest + highest) / (2 * scale)
    # A range that starts at zero (after Relu) keeps zero at the end of the grid.
    zero_point = LOWEST if lowest == 0.0 else int(np.clip(np.round(centre), LOWEST, HIGHEST))
    return Grid(scale, zero_point)


def weight_scales(weights: Floats, bias: Floats, source_scale: float, rounding: Rounding) -> Floats:
    """One symmetric scale per output channel (axis 0), never zero.

    Each is also large enough for the channel's bias, which is stored as int32 in steps of scale *
    source_scale: a channel whose weights are (nearly) all zero would overflow there.
    """
    by_weights = np.abs(weights).reshape(weights.shape[0], -1).max(axis=1) / HIGHEST
    by_bias = np.abs(bias) / (source_scale * LARGEST_BIAS)
    needed = np.maximum(np.maximum(by_weights, by_bias), SMALLEST_SCALE)
    return np.array([rounding(float(scale)) for scale in needed], dtype=np.float32)


def observe(float_onnx: bytes, calibration: Floats) -> dict[str, tuple[float, float]]:
    """(lowest, highest) of every tensor over the calibration inputs (N, C, H, W)."""
    model = onnx.load_model_from_string(float_onnx)
    names = [output for node in model.graph.node for output in node.output]
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    source = model.graph.input[0].name
    ranges = {source: (float(calibration.min()), float(calibration.max()))}
    for sample in calibration:
        for name, value in zip(names, session.run(names, {source: sample[None]}), strict=True):
            lowest, highest = ranges.get(name, (np.inf, -np.inf))
            ranges[name] = (min(lowest, float(value.min())), max(highest, float(value.max())))
    return ranges


@dataclass
class _Rewriter:
    """State of one rewrite: what was emitted so far and on which grid each tensor lies."""

    constants: Mapping[str, NDArray[np.generic]]
    rounding: Rounding
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    grids: dict[str, Grid] = field(default_factory=dict)
    dequantised: dict[str, int] = field(default_factory=dict)

    def store(self, name: str, value: NDArray[np.generic]) -> str:
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def quantise(self, source: str, name: str, grid: Grid) -> None:
        """Emits QuantizeLinear: ``source`` (float) -> ``name``.int8."""
        self.grids[name] = grid
        scale = self.store(f"{name}.scale", np.array(grid.scale, dtype=np.float32))
        zero = self.store(f"{name}.zero_point", np.array(grid.zero_point, dtype=np.int8))
        self.nodes.append(
            helper.make_node(
                "QuantizeLinear", [source, scale, zero], [f"{name}.int8"], name=f"{name}.quantise"
            )
        )

    def dequantise(self, name: str, target: str | None = None) -> str:
        """Emits a DequantizeLinear of its own for each reader, so that a graph splits at every tensor."""
        reader = self.dequantised[name] = self.dequantised.get(name, -1) + 1
        result = target or f"{name}.float{reader}"
        self.nodes.append(
            helper.make_node(
                "DequantizeLinear",
                [f"{name}.int8", f"{name}.scale", f"{name}.zero_point"],
                [result],
                name=f"{name}.dequantise{reader}",
            )
        )
        return result

    def parameters(self, node: onnx.NodeProto) -> list[str]:
        """Quantises weights per channel and the bias with them; returns the names of their float forms."""
        weights = np.asarray(self.constants[node.input[1]], dtype=np.float32)
        bias = np.asarray(self.constants[node.input[2]], dtype=np.float32)
        source_scale = self.grids[node.input[0]].scale
        scales = weight_scales(weights, bias, source_scale, self.rounding)
        stored = np.round(weights / scales.reshape(-1, *([1] * (weights.ndim - 1))))
        bias_scales = np.float32(source_scale) * scales
        return [
            self._parameter(node.input[1], np.clip(stored, -HIGHEST, HIGHEST).astype(np.int8), scales),
            self._parameter(node.input[2], np.round(bias / bias_scales).astype(np.int32), bias_scales),
        ]

    def _parameter(self, name: str, stored: NDArray[np.generic], scales: Floats) -> str:
        inputs = [
            self.store(f"{name}.int", stored),
            self.store(f"{name}.scale", scales),
            self.store(f"{name}.zero_point", np.zeros(scales.shape, dtype=stored.dtype)),
        ]
        self.nodes.append(
            helper.make_node("DequantizeLinear", inputs, [name], name=f"{name}.dequantise", axis=0)
        )
        return name


def quantise(float_onnx: bytes, calibration: Floats, rounding: Rounding, *, source_grid: Grid) -> bytes:
    """The QDQ model of a float model made by ``GraphBuilder``.

    ``source_grid`` is given, not observed: the inputs' grid is part of what a model promises its users.
    """
    graph = onnx.load_model_from_string(float_onnx).graph
    ranges = observe(float_onnx, calibration)
    rewriter = _Rewriter({c.name: numpy_helper.to_array(c) for c in graph.initializer}, rounding)
    source = graph.input[0].name
    rewriter.quantise(source, source, source_grid)
    relu_of = {node.input[0]: node for node in graph.node if node.op_type == "Relu"}
    for node in graph.node:
        if node.op_type == "Relu":
            continue
        relu = relu_of.get(node.output[0])
        _emit(rewriter, node, relu, ranges)
    for output in graph.output:
        rewriter.dequantise(output.name, output.name)
    return serialise(
        helper.make_graph(rewriter.nodes, graph.name, graph.input, graph.output, rewriter.initializers)
    )


def _emit(
    rewriter: _Rewriter,
    node: onnx.NodeProto,
    relu: onnx.NodeProto | None,
    ranges: Mapping[str, tuple[float, float]],
) -> None:
    """One operator with its Relu: dequantise the features, operate, quantise the result."""
    has_parameters = node.op_type in {"Conv", "Gemm"}
    features = node.input[:1] if has_parameters else node.input
    inputs = [rewriter.dequantise(name) for name in features]
    if has_parameters:
        inputs += rewriter.parameters(node)
    name = relu.output[0] if relu is not None else node.output[0]
    operated = onnx.NodeProto()
    operated.CopyFrom(node)
    del operated.input[:]
    del operated.output[:]
    operated.input.extend(inputs)
    operated.output.append(f"{node.output[0]}.result")
    rewriter.nodes.append(operated)
    result = operated.output[0]
    if relu is not None:
        rewriter.nodes.append(helper.make_node("Relu", [result], [f"{name}.result"], name=name))
        result = f"{name}.result"
    if node.op_type in KEEPS_SCALE:
        grid = rewriter.grids[features[0]]
    else:
        grid = grid_of(*ranges[name], rewriter.rounding)
    rewriter.quantise(result, name, grid)
