"""From a QDQ ONNX model to the file that an emulated board loads (host side; needs ``onnx``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pytest_rknpu.emulator.container import Layer, PackedModel, Port, Tensor, Weight, encode
from pytest_rknpu.emulator.plan import Live, aligned, end_of, place
from pytest_rknpu.emulator.qdq import CONVERSIONS, Constant, QdqGraph, Quantised, Region
from pytest_rknpu.errors import ModelError
from pytest_rknpu.inventory.socs import find_soc

DEFAULT_VERSION = "2.3.2"
CUSTOM_STRING_BYTES = 1023


def pack(
    qdq_onnx: bytes,
    soc: str,
    version: str | None = None,
    *,
    remove_weight: bool = False,
    custom_string: str = "",
) -> bytes:
    """Pack a QDQ model (int8 or uint8 activations, fixed shapes) for the emulated boards of ``soc``.

    ``version`` is the compiler version that the file states (``emulated VERSION``); given, a runtime that
    is older refuses the file, as real ones refuse newer models. ``remove_weight`` leaves the weights out,
    for contexts that share those of another (RKNN_FLAG_SHARE_WEIGHT_MEM). Equal arguments give equal
    bytes.

    Raises ModelError for what is no sound QDQ model or has operators outside qdq.SUPPORTED_OPERATORS, and
    ConfigurationError for an unknown SoC.
    """
    platform = find_soc(soc).toolkit_platform
    if len(custom_string.encode()) > CUSTOM_STRING_BYTES:
        raise ModelError(f"custom_string is longer than {CUSTOM_STRING_BYTES} bytes (rknn_custom_string)")
    graph = QdqGraph(qdq_onnx)
    activations = {name: graph.input_activation(name) for name in graph.inputs}
    quantisers = graph.quantisers()
    activations.update({node.output[0]: graph.activation(node) for node in quantisers})
    shown = {name: graph.output_activation(name) for name in graph.outputs}
    regions = _needed([graph.region(node) for node in quantisers], set(shown.values()))
    names = [*graph.inputs, *(region.stores for region in regions)]
    tensors, internal_size = _placed([activations[name] for name in names], regions, set(shown.values()))
    numbers = {name: number for number, name in enumerate(names)}
    weights = _WeightMemory()
    blob = bytearray()
    layers = tuple(_layer(graph, region, activations, numbers, weights, blob) for region in regions)
    weight_bytes = b"" if remove_weight else bytes(weights.data)
    model = PackedModel(
        target_platform=platform,
        compiler=f"emulated {version or DEFAULT_VERSION}",
        needs_runtime=version,
        custom_string=custom_string,
        tensors=tensors,
        inputs=tuple(Port(name, numbers[name]) for name in graph.inputs),
        outputs=tuple(Port(name, numbers[stored]) for name, stored in shown.items()),
        layers=layers,
        internal_size=internal_size,
        weight_size=len(weights.data),
        weights=None if remove_weight else (len(blob), len(weight_bytes)),
        blob=bytes(blob) + weight_bytes,
    )
    return encode(model)


def _needed(regions: Sequence[Region], shown: set[str]) -> list[Region]:
    """The layers that an output depends on, in order."""
    wanted, kept = set(shown), []
    for region in reversed(regions):
        if region.stores in wanted:
            wanted.update(region.reads)
            kept.append(region)
    return kept[::-1]


def _placed(
    activations: Sequence[Quantised], regions: Sequence[Region], shown: set[str]
) -> tuple[tuple[Tensor, ...], int]:
    """Tensors with their place in the internal buffer, and its size.

    Step 0 loads the inputs, step k+1 is layer k, and the last step hands out the outputs.
    """
    last_step = len(regions) + 1
    first = {region.stores: step for step, region in enumerate(regions, start=1)}
    last = {name: step for step, region in enumerate(regions, start=1) for name in region.reads}
    last.update(dict.fromkeys(shown, last_step))
    live = [
        Live(int(np.prod(a.shape)), first.get(a.name, 0), max(last.get(a.name, 0), first.get(a.name, 0)))
        for a in activations
    ]
    offsets = place(live)
    tensors = tuple(
        Tensor(a.name, a.shape, a.scale, a.zero_point, offset, space.size)
        for a, offset, space in zip(activations, offsets, live, strict=True)
    )
    return tensors, end_of(live, offsets)


@dataclass
class _WeightMemory:
    """The weight memory as it fills up; a constant that several layers read is stored once."""

    data: bytearray = field(default_factory=bytearray)
    stored: dict[str, Weight] = field(default_factory=dict)

    def store(self, name: str, value: Constant) -> Weight:
        if name not in self.stored:
            raw = np.ascontiguousarray(value).tobytes()
            self.stored[name] = Weight(name, value.dtype.name, tuple(value.shape), len(self.data), len(raw))
            self.data += raw.ljust(aligned(len(raw)), b"\0")
        return self.stored[name]


def _layer(
    graph: QdqGraph,
    region: Region,
    activations: Mapping[str, Quantised],
    numbers: Mapping[str, int],
    weights: _WeightMemory,
    blob: bytearray,
) -> Layer:
    fed = tuple(weights.store(name, region.constants[name]) for name in _weight_names(region))
    data = _sub_model(graph, region, activations, {weight.name for weight in fed})
    place_in_blob = (len(blob), len(data))
    blob += data
    return Layer(
        name=region.nodes[-1].name or region.stores,
        operators=region.operators,
        feeds=tuple((name, numbers[name]) for name in region.reads),
        output=numbers[region.stores],
        weights=fed,
        graph=place_in_blob,
    )


def _weight_names(region: Region) -> list[str]:
    """Constants that lie in weight memory: what is dequantised, and float data. Shapes, axes and scales do
    not.
    """
    conversion_parameters = {
        name for node in region.nodes if node.op_type in CONVERSIONS for name in node.input[1:]
    }
    dequantised = {node.input[0] for node in region.nodes if node.op_type == "DequantizeLinear"}

    def is_weight(name: str, value: Constant) -> bool:
        floats = value.dtype == np.float32 and value.size > 1 and name not in conversion_parameters
        return name in dequantised or floats

    return sorted(name for name, value in region.constants.items() if is_weight(name, value))


def _sub_model(
    graph: QdqGraph, region: Region, activations: Mapping[str, Quantised], weights: set[str]
) -> bytes:
    """The layer as an ONNX model: int8 activations and weights are inputs, the stored int8 result is the
    output.
    """
    builder = _SubModel()
    for name in region.reads:
        builder.activation_input(activations[name])
    for name in sorted(weights):
        value = region.constants[name]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        builder.inputs.append(helper.make_tensor_value_info(name, kind, value.shape))
    conversion = region.nodes[-1]
    for node in region.nodes[:-1]:
        if graph.reads_activation(node):
            stored = graph.stored(node.input[0])
            builder.convert(node, activations[stored], stored)
        else:
            builder.nodes.append(node)
    builder.convert(conversion, activations[region.stores], conversion.input[0])
    used = {name for node in builder.nodes for name in node.input}
    constants = {name: value for name, value in region.constants.items() if name in used - weights}
    builder.initializers += [numpy_helper.from_array(constants[name], name) for name in sorted(constants)]
    return builder.finish(activations[region.stores], graph.model)


@dataclass
class _SubModel:
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    _scales: set[str] = field(default_factory=set)

    def activation_input(self, activation: Quantised) -> None:
        info = helper.make_tensor_value_info(activation.name, onnx.TensorProto.INT8, activation.shape)
        self.inputs.append(info)

    def convert(self, node: onnx.NodeProto, activation: Quantised, source: str) -> None:
        """The conversion ``node`` with int8 parameters of its own: a uint8 model is stored as int8 here."""
        scale, zero = f"{activation.name}/scale", f"{activation.name}/zero_point"
        if activation.name not in self._scales:
            self._scales.add(activation.name)
            self.initializers += [
                numpy_helper.from_array(np.array(activation.scale, np.float32), scale),
                numpy_helper.from_array(np.array(activation.zero_point, np.int8), zero),
            ]
        self.nodes.append(
            helper.make_node(node.op_type, [source, scale, zero], list(node.output), name=node.name)
        )

    def finish(self, output: Quantised, whole: onnx.ModelProto) -> bytes:
        shown = helper.make_tensor_value_info(output.name, onnx.TensorProto.INT8, output.shape)
        graph = helper.make_graph(self.nodes, "layer", self.inputs, [shown], self.initializers)
        model = helper.make_model(graph, opset_imports=whole.opset_import, ir_version=whole.ir_version)
        data: bytes = model.SerializeToString(deterministic=True)
        return data
