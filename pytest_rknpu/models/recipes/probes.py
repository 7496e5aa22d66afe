"""Recipes of the probe models: made-up networks whose outputs tell much about which bytes the NPU read.

All scales are powers of two and all weights lie on their grid, so float32 computes each int8 layer exactly:
whichever kernel computes it without an overflow of its own, the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.models.recipes.graph import Floats, GraphBuilder
from pytest_rknpu.models.recipes.quantise import Grid

CALIBRATION_SAMPLES = 8


@dataclass(frozen=True)
class Recipe:
    """A probe: its float graph, the grid of its inputs and what it is for."""

    name: str
    description: str
    seed: int
    source_shape: tuple[int, int, int]
    source_grid: Grid
    build: Callable[[np.random.Generator], bytes]


def calibration_bytes(recipe: Recipe) -> NDArray[np.int8]:
    """Uniform random bytes (N, C, H, W): what the suites send. The first sample holds each byte value."""
    generator = np.random.default_rng(recipe.seed + 1)
    shape = (CALIBRATION_SAMPLES, *recipe.source_shape)
    drawn = generator.integers(-128, 128, size=shape).astype(np.int8)
    drawn.reshape(-1)[:256] = np.arange(-128, 128)
    return drawn


def _weights(generator: np.random.Generator, shape: tuple[int, ...], amplitude: int, exponent: int) -> Floats:
    """Integers in [-amplitude, amplitude] times 2**-exponent; with 64..127 that is the stored grid."""
    drawn = generator.integers(-amplitude, amplitude + 1, size=shape)
    # Each output channel holds the extreme once, so that its scale is the declared one.
    drawn.reshape(shape[0], -1)[:, 0] = amplitude
    return (drawn * 2.0**-exponent).astype(np.float32)


def _bias(generator: np.random.Generator, channels: int) -> Floats:
    """Small biases on a grid of 1/256, so that channels differ in their mean."""
    return (generator.integers(-64, 65, size=channels) / 256).astype(np.float32)


POINTWISE_GRID = Grid(1 / 64, -28)
PROBE_GRID = Grid(1 / 64, -9)


def _pointwise(generator: np.random.Generator) -> bytes:
    """Output channel k copies input channel permutation[k]; odd k store its complement (-1 - byte).

    With s and z the grid of both sides, -1 - q stored means -x - (1 + 2 z) s in real numbers: weight -1 and
    that bias.
    """
    graph = GraphBuilder("probe_pointwise")
    channels = 16
    permutation = generator.permutation(channels)
    weights = np.zeros((channels, channels, 1, 1), dtype=np.float32)
    signs = np.where(np.arange(channels) % 2, -1.0, 1.0)
    weights[np.arange(channels), permutation, 0, 0] = signs
    complement = -(1 + 2 * POINTWISE_GRID.zero_point) * POINTWISE_GRID.scale
    bias = np.where(signs < 0, complement, 0.0).astype(np.float32)
    graph.convolution("output", "input", weights, bias)
    return graph.finish("input", (16, 16, 16), {"output": (16, 16, 16)})


def _chain(generator: np.random.Generator) -> bytes:
    """3x3 -> depthwise 3x3, stride 2 -> 1x1, added to what went in -> 3x3: five internal tensors in turn."""
    graph = GraphBuilder("probe_chain")
    graph.convolution("wide", "input", _weights(generator, (32, 16, 3, 3), 100, 10), _bias(generator, 32))
    graph.relu("wide.relu", "wide")
    depthwise = _weights(generator, (32, 1, 3, 3), 96, 7)
    graph.convolution("depthwise", "wide.relu", depthwise, _bias(generator, 32), stride=2, groups=32)
    graph.convolution(
        "pointwise", "depthwise", _weights(generator, (32, 32, 1, 1), 100, 9), _bias(generator, 32)
    )
    graph.add("sum", "depthwise", "pointwise")
    graph.convolution("output", "sum", _weights(generator, (32, 32, 3, 3), 100, 11), _bias(generator, 32))
    return graph.finish("input", (16, 16, 16), {"output": (32, 8, 8)})


def _wide(generator: np.random.Generator) -> bytes:
    """Two branches joined by Concat and halved by MaxPool: a large internal buffer, 24 output channels."""
    graph = GraphBuilder("probe_wide")
    graph.convolution("stem", "input", _weights(generator, (32, 4, 3, 3), 100, 9), _bias(generator, 32))
    graph.convolution("narrow", "stem", _weights(generator, (16, 32, 1, 1), 100, 9), _bias(generator, 16))
    graph.relu("narrow.relu", "narrow")
    graph.convolution("broad", "stem", _weights(generator, (32, 32, 3, 3), 100, 10), _bias(generator, 32))
    graph.concatenate("joined", ["narrow.relu", "broad"])
    graph.maximum_pool("pooled", "joined", 2)
    output = _weights(generator, (24, 48, 3, 3), 100, 11)
    graph.convolution("output", "pooled", output, _bias(generator, 24), stride=2)
    return graph.finish("input", (4, 32, 32), {"output": (24, 8, 8)})


def _stride(generator: np.random.Generator) -> bytes:
    """Three channels and a width of 20: rows are padded in memory, input and output alike."""
    graph = GraphBuilder("probe_stride")
    graph.convolution("first", "input", _weights(generator, (16, 3, 3, 3), 110, 9), _bias(generator, 16))
    graph.relu("first.relu", "first")
    graph.convolution(
        "output", "first.relu", _weights(generator, (8, 16, 3, 3), 100, 10), _bias(generator, 8)
    )
    return graph.finish("input", (3, 20, 20), {"output": (8, 20, 20)})


RECIPES = (
    Recipe(
        "probe_pointwise",
        "One 1x1 convolution that permutes channels and complements every second one: each input byte has "
        "exactly one image in the output, and each change of it changes that image",
        1001,
        (16, 16, 16),
        POINTWISE_GRID,
        _pointwise,
    ),
    Recipe(
        "probe_chain",
        "Convolution, depthwise convolution, 1x1 convolution, residual add and convolution: several internal "
        "tensors that take turns in one buffer",
        1002,
        (16, 16, 16),
        PROBE_GRID,
        _chain,
    ),
    Recipe(
        "probe_wide",
        "Two branches, Concat and MaxPool: an internal buffer several times that of probe_chain, and another "
        "output shape",
        1003,
        (4, 32, 32),
        PROBE_GRID,
        _wide,
    ),
    Recipe(
        "probe_stride",
        "Three channels of width 20, which no NPU's row alignment divides: w_stride differs from the width",
        1004,
        (3, 20, 20),
        PROBE_GRID,
        _stride,
    ),
)
