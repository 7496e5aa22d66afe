"""The graph that the compiler's tables refer to, and which layer of the log writes each of its tensors.

The tables name the readers of a tensor, never its producer. The toolkit writes the fused ONNX graph beside a
verbose build (``Compiled.fused_graph``); what the compiler does to it afterwards follows a few rules of
naming.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped,unused-ignore]

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.build_log import Plan

INPUT, OUTPUT = "InputOperator", "OutputOperator"
CONCAT, SPLIT = "Concat", "Split"
#: Scratch memory of the operator that "reads" it; it has no producer.
SCRATCH = re.compile(r"_(exSecondary\d*|compute_zone)$")
#: A convolution that took a following elementwise operator in.
_TAKEN_IN = re.compile(r"_Conv[A-Z]\w*$")
#: The layers that one node became, for instance /GlobalAveragePool_2conv0 and /GlobalAveragePool_2conv1.
_PART = r"%s_2[a-z]+\d*"
#: The first layer of all, which has no name, brings an input into the NPU's layout.
_NEW_INPUT = "New_input_"
#: A convolution of few groups became a Split, a convolution for each group, and a Concat.
_GROUP = re.compile(r"^(?P<node>.*)_group_\d+$")
_BRANCH = re.compile(r"_branch(?P<number>\d+)$")
#: A change of type between two layers: the layer X__cvt_int8_float16 writes the tensor X__float16.
_CONVERSION = re.compile(r"^(?P<tensor>.*)__cvt_\w+?_(?P<to>[a-z0-9]+)$")


@dataclass(frozen=True)
class Node:
    """An operator with its data inputs (constants left out)."""

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class FusedGraph:
    """``nodes`` in an order in which they can be computed."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


def read_fused_graph(content: bytes) -> FusedGraph:
    """Reads the ONNX file that the toolkit wrote. ToolkitError: it is none."""
    try:
        graph = onnx.load_model_from_string(content).graph
    except DecodeError as error:
        raise ToolkitError(f"the fused graph of the toolkit is no ONNX file: {error}") from None
    constants = {tensor.name for tensor in graph.initializer}
    nodes = tuple(
        Node(
            node.name,
            node.op_type,
            tuple(name for name in node.input if name and name not in constants),
            tuple(name for name in node.output if name),
        )
        for node in graph.node
    )
    inputs = tuple(value.name for value in graph.input if value.name not in constants)
    return FusedGraph(inputs, tuple(value.name for value in graph.output), nodes)


def producers(plan: Plan, graph: FusedGraph) -> Mapping[str, int]:
    """The ID of the layer that writes each tensor, for all tensors of which that can be told."""
    layers = {
        _node_name(layer.name): layer.id for layer in plan.layers if layer.op_type != OUTPUT and layer.name
    }
    found = {name: layers[name] for name in graph.inputs if name in layers}
    for node in graph.nodes:
        if node.name in layers:
            found.update(dict.fromkeys(node.outputs, layers[node.name]))
        elif parts := [
            layer for name, layer in layers.items() if re.fullmatch(_PART % re.escape(node.name), name)
        ]:
            found.update(dict.fromkeys(node.outputs, max(parts)))
    for name, layer in layers.items():
        # What the compiler put in later is named after its layer; so are the layers of a second input shape.
        found.setdefault(name, layer)
        if conversion := _CONVERSION.match(name):
            found.setdefault(f"{conversion['tensor']}__{conversion['to']}", layer)
    found |= _branches(plan, layers)
    unnamed = {layer.id for layer in plan.layers if not layer.name}
    for read in plan.reads:
        if read.id in unnamed:
            found.setdefault(_NEW_INPUT + read.tensor, read.id)
    return _taken_in(found, plan, graph)


def _branches(plan: Plan, layers: Mapping[str, int]) -> dict[str, int]:
    """The writers of what goes between the parts of a convolution of few groups, told by the readers."""
    splits = {_node_name(layer.name): layer.id for layer in plan.layers if layer.op_type == SPLIT}
    readers = {layer.id: _node_name(layer.name) for layer in plan.layers}
    found = {}
    for read in plan.reads:
        branch, part = _BRANCH.search(read.tensor), _GROUP.match(readers[read.id])
        if branch and part and part["node"] in splits:
            found[read.tensor] = splits[part["node"]]
        elif branch and read.user == CONCAT:
            writer = layers.get(f"{readers[read.id]}_group_{branch['number']}")
            found.update({} if writer is None else {read.tensor: writer})
    return found


def _taken_in(found: dict[str, int], plan: Plan, graph: FusedGraph) -> Mapping[str, int]:
    """Adds the outputs of nodes without a layer: that which computes the last of their inputs took them in.

    Unless something else is read of that layer: it has one output, and this node became something else.
    """
    read = {row.tensor for row in plan.reads}
    taken = {layer for name, layer in found.items() if name in read}
    for node in graph.nodes:
        sources = [found[name] for name in node.inputs if name in found]
        outputs = [name for name in node.outputs if name not in found]
        if not sources or not outputs or (max(sources) in taken and not read.isdisjoint(outputs)):
            continue
        found.update(dict.fromkeys(outputs, max(sources)))
        if not read.isdisjoint(outputs):
            taken.add(max(sources))
    return found


def _node_name(full_name: str) -> str:
    """ "Conv:/a/Conv_ConvAdd" is the layer of the node "/a/Conv"."""
    return _TAKEN_IN.sub("", full_name.partition(":")[2])
