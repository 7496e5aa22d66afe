"""Recipes of the sparse classifiers: one dense model with channels in multiples of 32, its pruned and
fine-tuned siblings, and one whose layers the guide's limits leave out.

All see the pictures of ``digits_cnn``. A sibling starts from the dense weights: it is pruned by magnitude
(``pytest_rknpu.sparsity``), then trained on while what was pruned is held at zero. Needs torch and
scikit-learn (``pip install 'pytest-rknpu[train]'``); as for ``digits_cnn`` the float models are kept, because
another processor's float kernels may end in other weights.
"""

from __future__ import annotations

import copy
import importlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.graph import Floats, GraphBuilder
from pytest_rknpu.sparsity import Kind, LayerReport, Mode, prune_onnx
from pytest_rknpu.sparsity.layers import Graph

SEED = 2025
DENSE_EPOCHS, TUNING_EPOCHS = 40, 60
DENSE_RATE, TUNING_RATE = 2e-3, 1e-3
CLASSES = 10


@dataclass(frozen=True)
class Convolution:
    """A convolution with "same" padding, and its Relu."""

    name: str
    inputs: int
    outputs: int
    kernel: tuple[int, int]
    stride: int = 1
    groups: int = 1


@dataclass(frozen=True)
class Classifier:
    """Convolutions, a maximum pool of ``pool`` pixels, one linear layer on ``features``."""

    convolutions: tuple[Convolution, ...]
    pool: int
    features: int


ALIGNED = Classifier(
    (
        Convolution("stem", 3, 64, (3, 3), stride=2),
        Convolution("tall", 64, 64, (3, 1)),
        Convolution("pointwise", 64, 64, (1, 1)),
    ),
    4,
    256,
)
UNALIGNED = Classifier(
    (
        Convolution("stem", 3, 36, (3, 3), stride=2),
        Convolution("odd_inputs", 36, 48, (1, 1)),
        Convolution("grouped", 48, 48, (3, 3), groups=4),
        Convolution("odd_outputs", 48, 62, (1, 1)),
    ),
    4,
    248,
)


@dataclass(frozen=True)
class SparseRecipe:
    """``mode`` is how it was pruned before fine-tuning; None: it stays dense."""

    name: str
    description: str
    classifier: Classifier
    mode: Mode | None


DENSE = SparseRecipe(
    "digits_aligned", "A classifier of the digits with channels in multiples of 32, dense", ALIGNED, None
)
RECIPES: tuple[SparseRecipe, ...] = (
    DENSE,
    SparseRecipe("digits_aligned_input", "digits_aligned, 4:2 along input channels", ALIGNED, Mode.INPUT),
    SparseRecipe("digits_aligned_output", "digits_aligned, 4:2 along output channels", ALIGNED, Mode.OUTPUT),
    SparseRecipe("digits_aligned_grid", "digits_aligned, 16:4", ALIGNED, Mode.INPUT_THEN_OUTPUT),
    SparseRecipe(
        "digits_unaligned",
        "A classifier pruned 16:4 whose layers all lie outside the guide's limits for sparse inference: "
        "channels that are no multiples of 32, groups, ten outputs",
        UNALIGNED,
        Mode.INPUT_THEN_OUTPUT,
    ),
)


@dataclass(frozen=True)
class Trained:
    """A float model, its top-1 share right after pruning, and what pruning did to each layer."""

    float_onnx: bytes
    pruned_onnx: bytes
    reports: tuple[LayerReport, ...]


def train_all(stored: NDArray[np.int8], labels: NDArray[Any]) -> dict[str, Trained]:
    """Trains on stored inputs (N, 3, 16, 16) and labels (N,); returns each recipe's model by its name."""
    dense: dict[Classifier, Any] = {}
    results = {}
    for recipe in RECIPES:
        if recipe.classifier not in dense:
            network = _network(recipe.classifier)
            _fit(network, stored, labels, DENSE_EPOCHS, DENSE_RATE, {})
            dense[recipe.classifier] = network
        results[recipe.name] = _sibling(recipe, dense[recipe.classifier], stored, labels)
    return results


def _sibling(recipe: SparseRecipe, dense: Any, stored: NDArray[np.int8], labels: NDArray[Any]) -> Trained:
    before = _exported(recipe, dense)
    if recipe.mode is None:
        return Trained(before, before, ())
    pruned, reports = prune_onnx(before, recipe.mode)
    graph = Graph(pruned)
    masks = {r.layer.name: graph.weights(r.layer) != 0 for r in reports if r.applied is not Kind.NONE}
    network = copy.deepcopy(dense)
    _fit(network, stored, labels, TUNING_EPOCHS, TUNING_RATE, masks)
    return Trained(_exported(recipe, network), pruned, reports)


def _network(classifier: Classifier) -> Any:
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    nn = torch.nn
    steps = []
    for layer in classifier.convolutions:
        padding = (layer.kernel[0] // 2, layer.kernel[1] // 2)
        convolution = nn.Conv2d(
            layer.inputs, layer.outputs, layer.kernel, layer.stride, padding, groups=layer.groups
        )
        steps += [(layer.name, convolution), (f"{layer.name}_relu", nn.ReLU())]
    steps += [("pooled", nn.MaxPool2d(classifier.pool)), ("flat", nn.Flatten())]
    steps += [("logits", nn.Linear(classifier.features, CLASSES))]
    return nn.Sequential(OrderedDict(steps))


def _fit(
    network: Any,
    stored: NDArray[np.int8],
    labels: NDArray[Any],
    epochs: int,
    rate: float,
    masks: Mapping[str, NDArray[np.bool_]],
) -> None:
    """Trains in place; what ``masks`` (by layer) says False of is put back to zero after each step."""
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    inputs = torch.from_numpy(stored.astype(np.float32) * np.float32(digits.GRID.scale))
    targets = torch.from_numpy(labels.astype(np.int64))
    kept = {network.get_submodule(name).weight: torch.from_numpy(mask) for name, mask in masks.items()}
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for batch in torch.randperm(len(inputs)).split(32):
            optimizer.zero_grad()
            scores = network(inputs[batch])
            torch.nn.functional.cross_entropy(scores, targets[batch], label_smoothing=0.05).backward()
            optimizer.step()
            with torch.no_grad():
                for weight, mask in kept.items():
                    weight.mul_(mask)
        schedule.step()


def _exported(recipe: SparseRecipe, network: Any) -> bytes:
    def parameters(name: str) -> tuple[Floats, Floats]:
        module = network.get_submodule(name)
        # Adding 0 turns the negative zeros that masking leaves into plain ones.
        return module.weight.detach().numpy() + np.float32(0), module.bias.detach().numpy()

    graph = GraphBuilder(recipe.name)
    source = "input"
    for layer in recipe.classifier.convolutions:
        graph.convolution(
            layer.name, source, *parameters(layer.name), stride=layer.stride, groups=layer.groups
        )
        source = graph.relu(f"{layer.name}.relu", layer.name)
    graph.maximum_pool("pooled", source, recipe.classifier.pool)
    graph.flatten("flat", "pooled")
    graph.dense("logits", "flat", *parameters("logits"))
    return graph.finish("input", digits.SHAPE, {"logits": (CLASSES,)})
