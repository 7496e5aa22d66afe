"""A pruning mode applied to an ONNX file, without training: weights by magnitude, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError
from pytest_rknpu.sparsity.eligibility import PRUNING, Selection, prunable_axes, reasons
from pytest_rknpu.sparsity.layers import Graph, Layer
from pytest_rknpu.sparsity.masks import mask_along
from pytest_rknpu.sparsity.modes import MODES, Axis, Kind, Mode, kind_of
from pytest_rknpu.sparsity.pattern import Pattern, sparsity_of

EVERYTHING = Selection()


@dataclass(frozen=True)
class LayerReport:
    """What became of one layer. ``applied`` is NONE where it was left out, for the ``reasons``.

    ``reasons`` also tell why a 16:4 mode was applied along one axis only. ``kept`` is the share of the sum of
    magnitudes that is left (1 where nothing was pruned). ``after`` is what the weights hold now.
    """

    layer: Layer
    applied: Kind
    reasons: tuple[str, ...]
    kept: float
    after: Pattern


def prune_onnx(
    content: bytes, mode: Mode, selection: Selection = EVERYTHING
) -> tuple[bytes, tuple[LayerReport, ...]]:
    """The model with all eligible layers pruned, and a report for each layer with weights.

    A constant that several nodes read is left as it is: what suits one may not suit the other. So are the
    integers of a QDQ model: prune the float model it was made from.

    ModelError: no ONNX model, weights outside the file or not finite. ConfigurationError: a selected name
    that the model does not have.
    """
    graph = Graph(content)
    layers = graph.layers()
    selection.require_names(layers)
    reports = tuple(_prune(graph, layer, mode, selection) for layer in layers)
    return graph.content(), reports


def patterns(content: bytes) -> dict[str, Pattern]:
    """What each layer with weights of an ONNX model holds, by its name. ModelError: no ONNX model."""
    return {layer.name: pattern for layer, pattern in _patterns(Graph(content))}


def _patterns(graph: Graph) -> Iterator[tuple[Layer, Pattern]]:
    for layer in graph.layers():
        yield layer, sparsity_of(graph.weights(layer))


def _prune(graph: Graph, layer: Layer, mode: Mode, selection: Selection) -> LayerReport:
    weights = graph.weights(layer)
    axes, why = _decide(graph, layer, mode, selection)
    if not axes:
        return LayerReport(layer, Kind.NONE, tuple(why), 1.0, sparsity_of(weights))
    pruned = _replaced(graph, layer, axes)
    total = float(np.abs(weights, dtype=np.float64).sum())
    kept = float(np.abs(pruned, dtype=np.float64).sum()) / total if total else 1.0
    return LayerReport(layer, kind_of(axes), tuple(why), kept, sparsity_of(pruned))


def _decide(
    graph: Graph, layer: Layer, mode: Mode, selection: Selection
) -> tuple[tuple[Axis, ...], list[str]]:
    """The axes to prune, and what was left out for which reasons."""
    excluded = selection.excludes(layer)
    why = [excluded] if excluded is not None else reasons(layer, PRUNING)
    if not why and graph.readers(layer.tensor) > 1:
        why = [f"its weights {layer.tensor!r} are read {graph.readers(layer.tensor)} times"]
    return ((), why) if why else prunable_axes(layer, mode)


def prune_all(content: bytes, mode: Mode) -> bytes:
    """The model with every layer pruned, whatever the limits: what a compiler then takes is up to it.

    ModelError: no ONNX model, weights outside the file, integers or not finite.
    """
    graph = Graph(content)
    for layer in graph.layers():
        _replaced(graph, layer, MODES[mode].axes)
    return graph.content()


def _replaced(graph: Graph, layer: Layer, axes: tuple[Axis, ...]) -> NDArray[Any]:
    """Puts pruned weights in the place of a layer's own; returns them. ModelError names the layer."""
    weights = graph.weights(layer)
    try:
        pruned = np.where(mask_along(weights, axes), weights, weights.dtype.type(0))
    except ModelError as error:
        raise ModelError(f"layer {layer.name!r}: {error}") from None
    graph.replace(layer, pruned)
    return pruned
