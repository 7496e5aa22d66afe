"""Which rows of a build log belong to which layer of the ONNX model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.sparsity.engagement import Ratio, Shown, ratio_of
from pytest_rknpu.sparsity.layers import Graph
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


def shown_by(content: bytes, rows: Sequence[Row]) -> list[Shown]:
    """Every layer with weights of an ONNX model, with what the rows of its build log say.

    ToolkitError: a layer cannot be found in the log, or its parts say different things.
    """
    graph = Graph(content)
    shown = []
    for layer in graph.layers():
        own = rows_of(layer.name, rows)
        if not own:
            raise ToolkitError(f"the build log has no row for the layer {layer.name!r}")
        said = {(row.data_type, _ratio(row)) for row in own}
        if len(said) > 1:
            parts = ", ".join(f"{row.name} {_ratio(row)}" for row in own)
            raise ToolkitError(f"the parts of the layer {layer.name!r} differ in the build log: {parts}")
        data_type, ratio = said.pop()
        kind = sparsity_of(graph.weights(layer)).kind
        flattened = layer.type == "Linear" and any(size > 1 for size in own[0].input_shapes[0][2:])
        shown.append(Shown(layer, kind, data_type, ratio, flattened))
    return shown


def _ratio(row: Row) -> Ratio:
    return ratio_of(row.sparse_ratio.text if row.sparse_ratio is not None else None)
