"""Memory maps: which tensor lies where in the arena, from its first layer to its last, by the build log."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pytest_rknpu.report.page.parts import Figure, svg_of
from pytest_rknpu.report.results import Result

MEASUREMENT = "memory map"
"""The measurement that holds one; its text is described in docs/results.md."""
COLUMNS = ("tensor", "offset (B)", "size (B)", "first layer", "last layer")

# Neighbours in the arena differ, and each can be seen on white and on black.
_COLOURS = ("#2563eb", "#c2410c", "#15803d", "#9333ea", "#b45309", "#0e7490", "#be185d", "#4d7c0f")
_MOST_LAYERS = 100_000
_NAMED_SHARE = 0.12
"""Of the arena's size: smaller tensors have no room for their name."""


@dataclass(frozen=True)
class Placed:
    """A tensor: bytes [offset, offset + size), needed from layer ``first`` to ``last``, both inclusive."""

    name: str
    offset: int
    size: int
    first: int
    last: int
    scratch: bool


@dataclass(frozen=True)
class MemoryMap:
    """A plan, as these tests wrote it down; ``left_out`` tensors are not in it. Sizes in bytes."""

    results: tuple[Result, ...]
    layers: int
    internal: int
    weights: int
    tensors: tuple[Placed, ...]
    left_out: int

    @property
    def start(self) -> int:
        """Where the arena begins: behind the weights, on SoCs where both are in one."""
        return min(tensor.offset for tensor in self.tensors)

    @property
    def end(self) -> int:
        """Where its last tensor ends."""
        return max(tensor.offset + tensor.size for tensor in self.tensors)

    def used_in(self, layer: int) -> int:
        """How many bytes are needed in a layer; what two tensors share counts once."""
        spans = sorted(
            (tensor.offset, tensor.offset + tensor.size)
            for tensor in self.tensors
            if tensor.first <= layer <= tensor.last
        )
        used = reached = 0
        for start, end in spans:
            used += max(0, end - max(start, reached))
            reached = max(reached, end)
        return used

    @property
    def peak(self) -> tuple[int, int]:
        """The first layer that needs most, and how many bytes it needs."""
        layer = max(range(self.layers + 1), key=self.used_in)
        return layer, self.used_in(layer)


@dataclass(frozen=True)
class DrawnMap:
    """A map with its drawing and its rows, as the page shows it."""

    figure: Figure
    rows: tuple[tuple[str, ...], ...]


def memory_maps(tests: Iterable[Result]) -> list[MemoryMap]:
    """The maps that tests wrote down, each once. What is none is passed over."""
    together: dict[str, list[Result]] = {}
    for result in tests:
        for one in result.measurements:
            if one.name == MEASUREMENT and isinstance(one.value, str):
                together.setdefault(one.value, []).append(result)
    found = (_parsed(tuple(results), text) for text, results in together.items())
    return [one for one in found if one is not None and one.tensors]


def _parsed(results: tuple[Result, ...], text: str) -> MemoryMap | None:
    try:
        table: dict[str, Any] = json.loads(text)
        layers = int(table["layers"])
        tensors = tuple(
            Placed(str(name), int(offset), int(size), int(first), int(last), bool(scratch))
            for name, offset, size, first, last, scratch in table["tensors"]
        )
        if layers > _MOST_LAYERS or not all(_is_sound(tensor, layers) for tensor in tensors):
            return None
        return MemoryMap(
            results, layers, int(table["internal"]), int(table["weights"]), tensors, int(table["left_out"])
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _is_sound(tensor: Placed, layers: int) -> bool:
    return 0 <= tensor.first <= tensor.last <= layers and tensor.offset >= 0 and tensor.size > 0


def drawn(found: MemoryMap) -> DrawnMap:
    """The map as the page shows it."""
    layer, used = found.peak
    words = (
        f"internal memory {found.internal:,} B, weights {found.weights:,} B; {len(found.tensors)} tensors "
        f"over {found.layers + 1} layers; most is needed in layer {layer}: {used:,} B"
    )
    if found.left_out:
        words += f"; {found.left_out} smaller tensors are not shown"
    title = "; ".join(map(_title, found.results))
    return DrawnMap(Figure(title, words, _drawing(found)), tuple(map(_row, found.tensors)))


def _title(result: Result) -> str:
    name = result.nodeid.rpartition("::")[2]
    return f"{result.board or 'no board'}: {name} ({result.evidence}, {result.outcome})"


def _row(tensor: Placed) -> tuple[str, ...]:
    name = f"{tensor.name} (scratch)" if tensor.scratch else tensor.name
    return (name, f"{tensor.offset:,}", f"{tensor.size:,}", str(tensor.first), str(tensor.last))


def _drawing(found: MemoryMap) -> str:
    """Layers to the right, offsets upwards; each tensor a rectangle, scratch memory hatched."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.patches import Rectangle

    canvas = Canvas(figsize=(6.4, 3.4), layout="constrained")
    axes = canvas.add_subplot()
    for place, tensor in enumerate(sorted(found.tensors, key=lambda tensor: (tensor.offset, tensor.first))):
        colour = _COLOURS[place % len(_COLOURS)]
        axes.add_patch(
            Rectangle(
                (tensor.first, tensor.offset / 1024),
                tensor.last - tensor.first + 1,
                tensor.size / 1024,
                facecolor=(colour, 0.3),
                edgecolor=colour,
                linewidth=0.8,
                hatch="///" if tensor.scratch else None,
            )
        )
        if tensor.size > _NAMED_SHARE * (found.end - found.start):
            axes.annotate(
                tensor.name[:24],
                ((tensor.first + tensor.last + 1) / 2, (tensor.offset + tensor.size / 2) / 1024),
                ha="center",
                va="center",
                fontsize=6,
            )
    axes.set_xlim(0, found.layers + 1)
    axes.set_ylim(found.start / 1024, max(found.end, found.start + 1) / 1024 * 1.02)
    axes.set_xlabel("layer, in the order of execution")
    axes.set_ylabel("offset in the arena (KiB)")
    return svg_of(canvas)
