"""Recipe of ``digits_cnn``: trains a small classifier on scikit-learn's handwritten digits.

The 8x8 grey pictures are drawn twice as large, as dark blue ink on yellowish paper: an RGB picture, so that a
wrong order of channels or a normalisation applied twice shows in the result. A picture byte b is the real
input (b - 128) / 64 and is stored as b - 128, so quantising the inputs loses nothing.

Needs torch and scikit-learn (``pip install 'pytest-rknpu[train]'``). Training repeats itself on one machine;
another processor's float kernels may end in other weights, so the float model is kept and the rest is derived
from it.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.models.recipes.graph import GraphBuilder
from pytest_rknpu.models.recipes.quantise import Grid

NAME = "digits_cnn"
SEED = 2024
EPOCHS = 40
HELD_OUT = 400
CALIBRATION_SAMPLES = 128
SHAPE = (3, 16, 16)
GRID = Grid(1 / 64, 0)
PAPER = np.array([250, 240, 180])
INK = np.array([20, 30, 120])

LICENCE = (
    "model: Apache-2.0; pictures: scikit-learn's load_digits, a copy of the test set of 'Optical Recognition "
    "of Handwritten Digits' by E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, "
    "https://doi.org/10.24432/C50P49, CC BY 4.0; redrawn in colour at twice the size"
)


def drawn(pictures: NDArray[Any]) -> NDArray[np.int8]:
    """Grey pictures (N, 8, 8) of 0..16 as stored model inputs int8 (N, 3, 16, 16)."""
    large = pictures.repeat(2, axis=1).repeat(2, axis=2)[:, None].astype(np.float64)
    colours = PAPER.reshape(1, 3, 1, 1) + (INK - PAPER).reshape(1, 3, 1, 1) * large / 16
    stored: NDArray[np.int8] = (np.round(colours) - 128).astype(np.int8)
    return stored


def split() -> dict[str, NDArray[Any]]:
    """All pictures in a fixed order: the first 400 are held out, the rest is trained on."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    stored, labels = drawn(digits.images[order]), digits.target[order].astype(np.uint8)
    return {
        "held_out": stored[:HELD_OUT],
        "held_out_labels": labels[:HELD_OUT],
        "training": stored[HELD_OUT:],
        "training_labels": labels[HELD_OUT:],
    }


def _torch() -> Any:
    """torch, which is large and untyped in part: needed for training alone."""
    return importlib.import_module("torch")


def _network() -> Any:
    nn = _torch().nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, groups=16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def train(stored: NDArray[np.int8], labels: NDArray[Any]) -> bytes:
    """Trains on stored inputs (N, 3, 16, 16) and returns the float ONNX model."""
    torch = _torch()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    network = _network()
    inputs = torch.from_numpy(stored.astype(np.float32) * np.float32(GRID.scale))
    targets = torch.from_numpy(labels.astype(np.int64))
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(inputs)).split(32):
            optimizer.zero_grad()
            scores = network(inputs[batch])
            torch.nn.functional.cross_entropy(scores, targets[batch], label_smoothing=0.05).backward()
            optimizer.step()
        schedule.step()
    return _exported(network)


def _exported(network: Any) -> bytes:
    def parameters(position: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        weight, bias = network[position].weight, network[position].bias
        return weight.detach().numpy(), bias.detach().numpy()

    graph = GraphBuilder(NAME)
    graph.convolution("first", "input", *parameters(0))
    graph.relu("first.relu", "first")
    graph.maximum_pool("pooled", "first.relu", 2)
    graph.convolution("depthwise", "pooled", *parameters(3), groups=16)
    graph.relu("depthwise.relu", "depthwise")
    graph.convolution("pointwise", "depthwise.relu", *parameters(5))
    graph.relu("pointwise.relu", "pointwise")
    graph.convolution("last", "pointwise.relu", *parameters(7), stride=2)
    graph.relu("last.relu", "last")
    graph.flatten("features", "last.relu")
    graph.dense("logits", "features", *parameters(10))
    return graph.finish("input", SHAPE, {"logits": (10,)})
