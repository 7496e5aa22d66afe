"""Three networks whose layers show what the compiler makes of pruned weights; made when needed, never stored.

Weights are seeded random numbers. ``aligned`` has layers within the guide's limits for sparse inference, and
a large one whose weights are most of the model; ``flattened`` has a linear layer behind a flattened picture;
each layer of ``beyond`` is outside one limit, which its name says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from pytest_rknpu.models.recipes.graph import Floats, GraphBuilder

SHAPE = (3, 16, 16)
_SEED = 3107
_CALIBRATION_SAMPLES = 4


@dataclass(frozen=True)
class SparseProbe:
    """A dense float model and calibration data (N, 3, 16, 16)."""

    onnx: bytes
    calibration: Floats


@dataclass
class _Chain:
    """Layers one behind the other, each with its Relu."""

    graph: GraphBuilder
    random: np.random.Generator
    last: str = "input"

    def weights(self, *shape: int) -> tuple[Floats, Floats]:
        """Weights (Cout, Cin, ...) that keep the spread of what goes in, and a bias of zero."""
        deviation = np.sqrt(2 / np.prod(shape[1:]))
        return self.random.normal(0, deviation, shape).astype(np.float32), np.zeros(shape[0], np.float32)

    def convolution(self, name: str, *shape: int, stride: int = 1, groups: int = 1) -> None:
        self.graph.convolution(name, self.last, *self.weights(*shape), stride=stride, groups=groups)
        self.last = self.graph.relu(f"{name}.relu", name)

    def other(self, operator: str, name: str, shape: tuple[int, ...], **attributes: Any) -> None:
        """An operator with weights that no model of the suites has."""
        weights, _ = self.weights(*shape)
        constant = numpy_helper.from_array(weights, f"{name}.weight")
        self.graph.constants.append(constant)
        self.graph.nodes.append(
            helper.make_node(operator, [self.last, constant.name], [name], name=name, **attributes)
        )
        self.last = self.graph.relu(f"{name}.relu", name)

    def reshape(self, name: str, *shape: int) -> None:
        constant = numpy_helper.from_array(np.array(shape, np.int64), f"{name}.shape")
        self.graph.constants.append(constant)
        self.graph.nodes.append(helper.make_node("Reshape", [self.last, constant.name], [name], name=name))
        self.last = name

    def finish(self, outputs: int) -> SparseProbe:
        """Closes with a linear layer of ``outputs`` on 64 features, named "logits"."""
        self.graph.dense("logits", self.last, *self.weights(outputs, 64))
        content = self.graph.finish("input", SHAPE, {"logits": (outputs,)})
        drawn = self.random.normal(size=(_CALIBRATION_SAMPLES, *SHAPE))
        return SparseProbe(content, drawn.astype(np.float32))


def aligned() -> SparseProbe:
    """All but the first and the last layer are within the guide's limits; "large" has 590,000 weights."""
    chain = _Chain(GraphBuilder("sparse_aligned"), np.random.default_rng(_SEED))
    chain.convolution("stem", 64, 3, 3, 3, stride=2)
    chain.convolution("square", 64, 64, 3, 3)
    chain.convolution("pointwise", 256, 64, 1, 1)
    chain.convolution("large", 256, 256, 3, 3)
    chain.last = chain.graph.maximum_pool("pooled", chain.last, 8)
    chain.last = chain.graph.flatten("flat", chain.last)
    chain.graph.dense("linear", chain.last, *chain.weights(64, 256))
    chain.last = chain.graph.relu("linear.relu", "linear")
    return chain.finish(10)


def flattened() -> SparseProbe:
    """A linear layer of 64 outputs on a flattened picture of 64 channels and 2 x 2 pixels."""
    chain = _Chain(GraphBuilder("sparse_flattened"), np.random.default_rng(_SEED + 2))
    chain.convolution("stem", 64, 3, 3, 3, stride=2)
    chain.last = chain.graph.maximum_pool("pooled", chain.last, 4)
    chain.last = chain.graph.flatten("flat", chain.last)
    chain.graph.dense("linear", chain.last, *chain.weights(64, 256))
    chain.last = chain.graph.relu("linear.relu", "linear")
    return chain.finish(10)


def beyond() -> SparseProbe:
    """Each layer breaks one limit: few or odd channels, groups, no Conv2d or Linear."""
    chain = _Chain(GraphBuilder("sparse_beyond"), np.random.default_rng(_SEED + 1))
    chain.convolution("three_inputs", 64, 3, 3, 3, stride=2)
    chain.convolution("outputs_48", 48, 64, 1, 1)
    chain.convolution("inputs_48", 64, 48, 1, 1)
    chain.convolution("outputs_36", 36, 64, 1, 1)
    chain.convolution("inputs_36", 64, 36, 1, 1)
    chain.convolution("outputs_5", 5, 64, 1, 1)
    chain.convolution("inputs_5", 64, 5, 1, 1)
    chain.convolution("outputs_4", 4, 64, 1, 1)
    chain.convolution("inputs_4", 64, 4, 1, 1)
    chain.convolution("two_groups", 64, 32, 3, 3, groups=2)
    chain.convolution("depthwise", 64, 1, 3, 3, groups=64)
    chain.other("ConvTranspose", "transposed", (64, 64, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    chain.reshape("sequence", 1, 64, 64)
    chain.other("Conv", "one_dimension", (64, 64, 3), kernel_shape=[3], pads=[1, 1])
    chain.reshape("picture", 1, 64, 8, 8)
    chain.last = chain.graph.maximum_pool("pooled", chain.last, 8)
    chain.last = chain.graph.flatten("flat", chain.last)
    return chain.finish(10)
