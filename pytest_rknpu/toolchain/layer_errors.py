"""What ``RKNN.accuracy_analysis`` writes into error_analysis.txt: the error of each layer (ACC-07).

Columns: simulator_error entire and single; with a connected board runtime_error entire and single_sim. Each
is a cosine and, since 2.x, a Euclidean distance behind a bar. Layers fused into the next one have a name and
no figures; ``nan`` stands where a tensor is constant, ``f_zero`` where the float one is all zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import nan

from pytest_rknpu.errors import ToolkitError

_ROW = re.compile(r"^\s*\[(?P<operator>[^\]]+)\]\s+(?P<name>\S+)\s*(?P<figures>.*)$")
_DEGENERATE = re.compile(r"nan|[a-z]+_zero")
_COLUMNS = ("entire", "single", "runtime_entire", "runtime_single")


@dataclass(frozen=True)
class LayerError:
    """Cosines of one layer against the float model; nan where degenerate, None where not measured.

    ``entire`` lets errors add up from layer to layer, ``single`` feeds each layer with the float model's
    values; ``runtime_entire`` is the board's, ``runtime_single`` that of the board against the simulator.
    """

    operator: str
    name: str
    entire: float | None
    single: float | None
    runtime_entire: float | None = None
    runtime_single: float | None = None


def parse_layer_errors(text: str) -> tuple[LayerError, ...]:
    """The layers in the file's order, those without figures included.

    ToolkitError: no layer has figures, or a row has another number of them than its columns.
    """
    rows = [row for line in text.splitlines() if (row := _ROW.match(line))]
    layers = tuple(_layer(row) for row in rows)
    if all(layer.entire is None for layer in layers):
        raise ToolkitError(f"accuracy_analysis measured no layer ({len(layers)} rows without figures)")
    return layers


def _layer(row: re.Match[str]) -> LayerError:
    figures = row["figures"].strip()
    words = figures.replace("|", " ").split()
    try:
        numbers = [nan if _DEGENERATE.fullmatch(word) else float(word) for word in words]
    except ValueError:
        raise ToolkitError(f"accuracy_analysis wrote a row of an unknown layout: {row[0].strip()}") from None
    cosines = numbers[::2] if "|" in figures else numbers
    if len(cosines) not in (0, 2, 4) or ("|" in figures and len(numbers) % 2):
        raise ToolkitError(f"accuracy_analysis wrote a row of an unknown layout: {row[0].strip()}")
    by_column: dict[str, float | None] = {"entire": None, "single": None}
    by_column.update(zip(_COLUMNS, cosines, strict=False))
    return LayerError(row["operator"], row["name"], **by_column)
