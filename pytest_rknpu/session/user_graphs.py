"""What the ONNX graph of a user's model says: its inputs, whether it is quantised; and parts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_rknpu.errors import ModelError

Shape = tuple[int, ...]
_QUANTISED = frozenset({"QuantizeLinear", "DequantizeLinear"})


@dataclass(frozen=True)
class OnnxGraph:
    """``inputs`` are those that are no constants, in order; a free dimension is 0. ``tensors`` are the names
    where the graph can be cut."""

    inputs: tuple[tuple[str, Shape], ...]
    tensors: frozenset[str]
    quantised: bool


def read_graph(content: bytes) -> OnnxGraph:
    """Of a checked ONNX file."""
    import onnx

    graph = onnx.load_model_from_string(content).graph
    constants = {constant.name for constant in graph.initializer}
    inputs = tuple(
        (value.name, tuple(d.dim_value for d in value.type.tensor_type.shape.dim))
        for value in graph.input
        if value.name not in constants
    )
    made = {name for node in graph.node for name in node.output if name}
    quantised = any(node.op_type in _QUANTISED for node in graph.node)
    return OnnxGraph(inputs, frozenset({name for name, _ in inputs} | made), quantised)


def output_shapes(content: bytes) -> tuple[Shape, ...]:
    """The shapes of an ONNX graph's outputs; empty where one of them is not known beforehand."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(content)).graph
    shapes = tuple(tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in graph.output)
    return shapes if all(shape and 0 not in shape for shape in shapes) else ()


def cut_onnx(content: bytes, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The part of an ONNX graph between named tensors; the graph itself where none are named.

    ModelError: it cannot be cut there.
    """
    if not inputs and not outputs:
        return content
    import onnx
    import onnx.utils

    model = onnx.load_model_from_string(content)
    constants = {constant.name for constant in model.graph.initializer}
    own_inputs = [value.name for value in model.graph.input if value.name not in constants]
    own_outputs = [value.name for value in model.graph.output]
    wanted = (list(inputs) or own_inputs, list(outputs) or own_outputs)
    if wanted == (own_inputs, own_outputs):
        return content
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
        part = onnx.utils.Extractor(inferred).extract_model(*wanted)
        onnx.checker.check_model(part)
    except Exception as error:  # KeyError, ValueError, ValidationError: onnx has no common base
        raise ModelError(
            f"the graph cannot be cut between {wanted[0]} and {wanted[1]} "
            f'(keys "inputs" and "outputs"): {type(error).__name__}: {error}'
        ) from None
    cut: bytes = part.SerializeToString()
    return cut
