"""What is measured of a model when it is built: whether a probe says as much as it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from pytest_rknpu.measure import count_top1
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.recipes.quantise import Grid


def top1_share(model: bytes, inputs: NDArray[np.float32], labels: NDArray[Any]) -> float:
    """How many of the inputs (N, C, H, W) the model names as labelled (N,), as a share."""
    return count_top1(run_onnx(model, inputs)[0], labels).share


def run_stored(qdq_onnx: bytes, grid: Grid, stored: NDArray[np.int8]) -> NDArray[np.int8]:
    """The stored (int8) output of a probe for stored inputs (N, C, H, W)."""
    model = onnx.load_model_from_string(qdq_onnx)
    constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    output = model.graph.output[0].name
    scale = constants[f"{output}.scale"].astype(np.float32)
    zero = constants[f"{output}.zero_point"].astype(np.float32)
    real = (stored.astype(np.float32) - grid.zero_point) * np.float32(grid.scale)
    output_bytes: NDArray[np.int8] = np.round(run_onnx(qdq_onnx, real)[0] / scale + zero).astype(np.int8)
    return output_bytes


def entropy_bits(values: NDArray[np.int8]) -> float:
    """Shannon entropy of the byte values; 8 is uniform, 0 constant."""
    share = np.bincount(values.reshape(-1).astype(np.int64) + 128, minlength=256) / values.size
    present = share[share > 0]
    return float(-(present * np.log2(present)).sum())


def dead_input_bytes(qdq_onnx: bytes, grid: Grid, sample: NDArray[np.int8]) -> int:
    """How many bytes of ``sample`` (C, H, W) can have their top bit flipped without any output changing."""
    single = np.repeat(sample[None], sample.size, axis=0)
    flat = single.reshape(sample.size, -1)
    np.fill_diagonal(flat, np.diagonal(flat) ^ np.int8(-128))
    reference = run_stored(qdq_onnx, grid, sample[None])
    changed = run_stored(qdq_onnx, grid, single) != reference
    return int((~changed.reshape(sample.size, -1).any(axis=1)).sum())


def probe_figures(qdq_onnx: bytes, grid: Grid, shape: tuple[int, int, int], seed: int) -> dict[str, float]:
    """Entropy (bit a byte), saturated share, smallest spread of a channel (steps) and dead input bytes."""
    generator = np.random.default_rng(seed + 2)
    stored = generator.integers(-128, 128, size=(4, *shape)).astype(np.int8)
    output = run_stored(qdq_onnx, grid, stored)
    spread = output.astype(np.float64).std(axis=(0, 2, 3))
    return {
        "output_entropy_bits": round(entropy_bits(output), 3),
        "output_saturated_share": round(float(np.isin(output, (-128, 127)).mean()), 5),
        "smallest_channel_deviation_steps": round(float(spread.min()), 2),
        "dead_input_bytes": float(dead_input_bytes(qdq_onnx, grid, stored[0])),
    }
