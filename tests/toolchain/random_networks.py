"""MEM-12's checker on networks that nobody thought of.

``python tests/toolchain/random_networks.py rk3588,rk3576 0 50`` builds those of the seeds 0 to 49 with the
installed RKNN-Toolkit2 and judges their plans. The compiler is taken to be right: each finding is an alarm,
and printed with the folder of the build. Some networks the toolkit refuses, or does not end with.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain import CompileOptions, compile_model, parse_build_log
from pytest_rknpu.toolchain.fused_graph import read_fused_graph
from pytest_rknpu.toolchain.memory_plan import PlanCheck, check_plan

Shape = tuple[int, int, int]
SOURCE: Shape = (3, 16, 16)
LARGEST_SIDE = 16
DEADLINE_S = 40.0


@dataclass
class Network:
    """A graph that grows by one operator after the other on what is there."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    there: list[tuple[str, Shape]] = field(default_factory=lambda: [("input", SOURCE)])

    def constant(self, value: Any) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape: int) -> str:
        drawn = self.random.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape)
        return self.constant(drawn.astype(np.float32))

    def add(self, operator: str, inputs: list[str], *shapes: Shape, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{index}" for index in range(len(shapes))]
        node = helper.make_node(operator, inputs, names, name=f"{operator}_{len(self.nodes)}", **attributes)
        self.nodes.append(node)
        self.there += zip(names, shapes, strict=True)
        return names[0]

    def content(self) -> bytes:
        read = {name for node in self.nodes for name in node.input}
        outputs = [(name, shape) for name, shape in self.there if name not in read][:4]

        def value(name: str, shape: Shape) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, *shape))

        inputs, results = [value("input", SOURCE)], [value(*output) for output in outputs]
        graph = helper.make_graph(self.nodes, "random", inputs, results, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())


def convolution(net: Network, source: str, shape: Shape) -> None:
    channels, height, width = shape
    outputs, kernel = int(net.random.choice([5, 16, 32, 64, 128])), int(net.random.choice([1, 3]))
    stride = 2 if height % 2 == width % 2 == 0 and height > 3 and net.random.random() < 0.3 else 1
    inputs = [source, net.weights(outputs, channels, kernel, kernel)]
    new = (outputs, height // stride, width // stride)
    net.add("Conv", inputs, new, pads=[kernel // 2] * 4, strides=[stride] * 2)


def grouped(net: Network, source: str, shape: Shape) -> None:
    channels, groups = shape[0], int(net.random.choice([2, 4, 8, shape[0]]))
    outputs = channels if groups == channels else int(net.random.choice([64, 128]))
    if channels % groups == 0 and outputs % groups == 0:
        weights = net.weights(outputs, channels // groups, 3, 3)
        net.add("Conv", [source, weights], (outputs, *shape[1:]), pads=[1] * 4, group=groups)


def elementwise(net: Network, source: str, shape: Shape) -> None:
    operator = net.random.choice(["Relu", "Sigmoid", "LeakyRelu", "PRelu", "Clip", "Softmax", "Mul"])
    more: dict[str, list[str]] = {
        "PRelu": [net.constant(np.full((shape[0], 1, 1), 0.2, np.float32))],
        "Clip": [net.constant(np.float32(0)), net.constant(np.float32(6))],
        "Mul": [net.weights(1, shape[0], 1, 1)],
    }
    net.add(
        str(operator),
        [source, *more.get(str(operator), [])],
        shape,
        **({"axis": 1} if operator == "Softmax" else {}),
    )


def binary(net: Network, source: str, shape: Shape) -> None:
    others = [name for name, other in net.there if other == shape and name != source]
    if others:
        net.add(
            str(net.random.choice(["Add", "Mul", "Sub"])), [source, str(net.random.choice(others))], shape
        )


def concat(net: Network, source: str, shape: Shape) -> None:
    others = [(name, other) for name, other in net.there if other[1:] == shape[1:] and name != source]
    chosen = [others[place] for place in net.random.permutation(len(others))[: net.random.integers(1, 4)]]
    if chosen:
        channels = shape[0] + sum(other[0] for _, other in chosen)
        net.add("Concat", [source, *(name for name, _ in chosen)], (channels, *shape[1:]), axis=1)


def parts(net: Network, source: str, shape: Shape) -> None:
    half = (shape[0] // 2, *shape[1:])
    if shape[0] % 2 == 0:
        net.add("Split", [source], half, half, axis=1)
    elif shape[0] > 2:
        limits = [net.constant([start]) for start in (0, half[0], 1)]
        net.add("Slice", [source, *limits], half)


def resized(net: Network, source: str, shape: Shape) -> None:
    channels, height, width = shape
    if height % 2 == width % 2 == 0 and height > 3 and net.random.random() < 0.5:
        kind = str(net.random.choice(["MaxPool", "AveragePool"]))
        net.add(kind, [source], (channels, height // 2, width // 2), kernel_shape=[2, 2], strides=[2, 2])
    elif height <= LARGEST_SIDE:
        scales = net.constant(np.array([1, 1, 2, 2], np.float32))
        new = (channels, height * 2, width * 2)
        if net.random.random() < 0.5:
            net.add(
                "Resize",
                [source, "", scales],
                new,
                mode="linear",
                coordinate_transformation_mode="half_pixel",
            )
        else:
            weights = net.weights(channels, 16, 2, 2)
            net.add("ConvTranspose", [source, weights], (16, *new[1:]), kernel_shape=[2, 2], strides=[2, 2])


def pooled(net: Network, source: str, shape: Shape) -> None:
    mean = net.add("GlobalAveragePool", [source], (shape[0], 1, 1))
    net.add("Mul", [source, mean], shape)


def turned(net: Network, source: str, shape: Shape) -> None:
    channels, height, width = shape
    if net.random.random() < 0.5:
        net.add("Transpose", [source], (channels, width, height), perm=[0, 1, 3, 2])
    else:
        net.add("Reshape", [source, net.constant([1, channels, width, height])], (channels, width, height))


STEPS: tuple[Callable[[Network, str, Shape], None], ...] = (
    *(convolution, convolution, grouped, grouped, elementwise, elementwise, binary, binary),
    *(concat, concat, parts, resized, pooled, turned),
)


def network(seed: int) -> bytes:
    """The ONNX model of this seed."""
    net = Network(np.random.default_rng(seed))
    convolution(net, "input", SOURCE)
    for _ in range(int(net.random.integers(4, 16))):
        latest = net.there[-4:]
        source, shape = latest[int(net.random.integers(len(latest)))]
        STEPS[int(net.random.integers(len(STEPS)))](net, source, shape)
    return net.content()


def checked(seed: int, soc: str, *, quantised: bool = True) -> tuple[PlanCheck, str]:
    """What MEM-12 says of the plan, and the folder of the build. ToolkitError: there is none."""
    samples = np.random.default_rng(0).normal(size=(2, *SOURCE)).astype(np.float32)
    options = CompileOptions(soc, samples if quantised else None)
    compiled = compile_model(network(seed), options, deadline_s=DEADLINE_S)
    plan = parse_build_log(compiled.log.read_text(encoding="utf-8", errors="replace")).plan
    graph = compiled.fused_graph
    return check_plan(plan, read_fused_graph(graph.read_bytes()) if graph else None), str(
        compiled.path.parent
    )


def outcomes(socs: list[str], seeds: range) -> Iterator[str]:
    for seed in seeds:
        for soc in socs:
            try:
                check, folder = checked(seed, soc)
            except ToolkitError as error:
                yield "refused by the toolkit"
                print(f"seed {seed}, {soc}: {str(error)[:160]}")
                continue
            yield "alarms" if check.findings else "sound"
            yield from ["tensors"] * len(check.tensors) + ["without a writer"] * len(check.unknown)
            if check.findings:
                print(f"seed {seed}, {soc}: {check.findings[0]} ({len(check.findings)} in all); {folder}")


if __name__ == "__main__":
    counted = Counter(outcomes(sys.argv[1].split(","), range(int(sys.argv[2]), int(sys.argv[3]))))
    print(", ".join(f"{count} {what}" for what, count in counted.items()))
