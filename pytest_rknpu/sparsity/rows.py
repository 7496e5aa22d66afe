"""Which rows of a build log belong to which layer of the ONNX model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.sparsity.engagement import Ratio, Shown, ratio_of
from pytest_rknpu.sparsity.layers import Graph, Layer
from pytest_rknpu.sparsity.pattern import sparsity_of

#: Split and Concat of a layer that was split up bear its name too.
_COMPUTES = re.compile(r"Conv|Gemm|MatMul")
#: What the compiler puts behind the name of a layer that it rewrote (linear to convolution), split up
#: (groups, long sums) or took an addition into.
_SUFFIX = re.compile(r"(#\d+)?(_group_\d+|_tile\d+)*(_Conv[A-Z]\w*)?")


class Cell(Protocol):
    """SparseRatio of a row."""

    @property
    def text(self) -> str: ...


class Row(Protocol):
    """The part of `pytest_rknpu.toolchain.log_rows.Layer` that is read here."""

    @property
    def name(self) -> str: ...
    @property
    def data_type(self) -> str: ...
    @property
    def sparse_ratio(self) -> Cell | None: ...
    @property
    def input_shapes(self) -> tuple[tuple[int, ...], ...]: ...


def rows_of(layer: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a layer: one, several where it was split, none where it cannot be found."""
    found = []
    for row in rows:
        operator, _, name = row.name.partition(":")
        if not _COMPUTES.search(operator):
            continue
        if name.startswith(layer) and _SUFFIX.fullmatch(name[len(layer) :]):
            found.append(row)
    return found


@dataclass(frozen=True)
class Found:
    """``shown`` are the layers that the log tells of; of those in ``lost`` it does not, for the reason given.

    The compiler rewrites some: a convolution behind a Concat becomes one for each part, with names of its
    own.
    """

    shown: tuple[Shown, ...]
    lost: Mapping[Layer, str]


def find_layers(content: bytes, rows: Sequence[Row]) -> Found:
    """Every layer with weights of an ONNX model, with what the rows of its build log say.

    ToolkitError: a row has a SparseRatio that is not known.
    """
    graph = Graph(content)
    shown, lost = [], {}
    namesakes = Counter(layer.name for layer in graph.layers())
    for layer in graph.layers():
        own = rows_of(layer.name, rows)
        said = {(row.data_type, _ratio(row)) for row in own}
        if namesakes[layer.name] > 1:
            lost[layer] = f"{namesakes[layer.name]} layers of the model are called {layer.name!r}"
        elif not own:
            lost[layer] = f"the build log has no row for the layer {layer.name!r}"
        elif len(said) > 1:
            parts = ", ".join(f"{row.name} {_ratio(row)}" for row in own)
            lost[layer] = f"the parts of the layer {layer.name!r} differ in the build log: {parts}"
        else:
            ((data_type, ratio),) = said
            kind = sparsity_of(graph.weights(layer)).kind
            shown.append(Shown(layer, kind, data_type, ratio, _is_flattened(layer, own[0])))
    return Found(tuple(shown), lost)


def shown_by(content: bytes, rows: Sequence[Row]) -> list[Shown]:
    """As ``find_layers``, where the log has to tell of every layer. ToolkitError: it does not."""
    found = find_layers(content, rows)
    if found.lost:
        raise ToolkitError("; ".join(found.lost.values()))
    return list(found.shown)


def _is_flattened(layer: Layer, row: Row) -> bool:
    """Whether a linear layer became a convolution over a picture of more than one pixel."""
    return layer.type == "Linear" and any(size > 1 for shape in row.input_shapes[:1] for size in shape[2:])


def _ratio(row: Row) -> Ratio:
    return ratio_of(row.sparse_ratio.text if row.sparse_ratio is not None else None)
