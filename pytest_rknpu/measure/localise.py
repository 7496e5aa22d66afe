"""Where an output differs from its reference (ACC-07): by channel group, row and cache line.

A missing sync leaves whole 64-byte lines wrong, a lost core a range of rows, a mistaken channel count a
group of channels: the pattern names the fault where a cosine only says that there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import HarnessError

LINE_BYTES = 64
#: As many entries of a list are written out; the rest is counted.
_SHOWN = 8

Array = NDArray[Any]


@dataclass(frozen=True)
class MemoryLayout:
    """NC1HWC2 memory: ``atom`` is C2 in elements, ``row_pixels`` the pixels of a row with its padding.

    None for ``row_pixels``: rows are not padded.
    """

    atom: int
    element_bytes: int
    row_pixels: int | None = None


@dataclass(frozen=True)
class Part:
    """The indices ``first`` to ``last`` along one direction: ``wrong`` of ``count`` elements differ there."""

    first: int
    last: int
    wrong: int
    count: int

    def __str__(self) -> str:
        place = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{place} ({'all' if self.wrong == self.count else f'{self.wrong} of {self.count}'})"


@dataclass(frozen=True)
class Location:
    """Where ``wrong`` of ``count`` elements lie that differ by more than ``threshold``.

    ``worst`` is the index (n, c, h, w) of the largest difference. ``channel_groups`` hold ``atom`` channels
    each, by their channels; ``rows`` and ``lines`` are runs of neighbours. ``lines`` are cache lines of 64
    bytes from the start of a sample's memory, over all samples; ``whole_lines`` says how many of the
    ``broken_lines`` have no right element.
    """

    wrong: int
    count: int
    threshold: float
    worst: tuple[int, ...]
    worst_difference: float
    samples: tuple[Part, ...]
    channel_groups: tuple[Part, ...]
    rows: tuple[Part, ...]
    lines: tuple[Part, ...]
    broken_lines: int
    whole_lines: int

    def __str__(self) -> str:
        offsets = ", ".join(
            f"{part.first * LINE_BYTES:#x}-{(part.last + 1) * LINE_BYTES - 1:#x}"
            for part in self.lines[:_SHOWN]
        )
        return (
            f"{self.wrong} of {self.count} elements differ by more than {self.threshold:.6g}, most "
            f"({self.worst_difference:.6g}) at (n, c, h, w) = {self.worst}; samples {_listed(self.samples)}; "
            f"channels {_listed(self.channel_groups)}; rows {_listed(self.rows)}; cache lines "
            f"{_listed(self.lines)}, {self.whole_lines} of {self.broken_lines} wholly wrong, at bytes "
            f"{offsets}"
        )


def locate(reference: Array, actual: Array, threshold: float, layout: MemoryLayout) -> Location | None:
    """The elements of arrays (N, C, H, W) or (N, ...) that differ by more than ``threshold``, or None.

    A shape that has not four dimensions counts as (N, C, 1, 1), C being all elements of a sample. What is
    not a number differs. HarnessError: shapes that differ, or nothing to compare.
    """
    if reference.shape != actual.shape or reference.size == 0:
        raise HarnessError(f"nothing to locate between shapes {reference.shape} and {actual.shape}")
    shape = reference.shape if reference.ndim == 4 else (reference.shape[0], -1, 1, 1)
    with np.errstate(invalid="ignore"):
        apart = np.abs(actual.astype(np.float64) - reference.astype(np.float64)).reshape(shape)
    apart = np.where(np.isnan(apart), np.inf, apart)
    wrong = apart > threshold
    if not wrong.any():
        return None
    lines = _line_parts(wrong, layout)
    worst = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return Location(
        int(wrong.sum()),
        wrong.size,
        threshold,
        tuple(int(index) for index in worst),
        float(apart.max()),
        _runs(_counted(wrong, axis=0)),
        tuple(_groups(wrong, layout.atom)),
        _runs(_counted(wrong, axis=2)),
        _runs(lines),
        len(lines),
        sum(part.wrong == part.count for part in lines),
    )


def _counted(wrong: NDArray[np.bool_], axis: int) -> list[Part]:
    """A part for each index along ``axis`` where anything is wrong."""
    others = tuple(other for other in range(wrong.ndim) if other != axis)
    counts, each = wrong.sum(axis=others), wrong.size // wrong.shape[axis]
    return [Part(int(i), int(i), int(counts[i]), each) for i in np.flatnonzero(counts)]


def _groups(wrong: NDArray[np.bool_], atom: int) -> Iterator[Part]:
    channels = wrong.shape[1]
    for first in range(0, channels, atom):
        group = wrong[:, first : first + atom]
        if group.any():
            yield Part(first, min(first + atom, channels) - 1, int(group.sum()), group.size)


def _line_parts(wrong: NDArray[np.bool_], layout: MemoryLayout) -> list[Part]:
    """A part for each cache line that holds a wrong element, all samples taken together."""
    lines = element_offsets(wrong.shape[1:], layout) // LINE_BYTES
    broken = np.bincount(lines.reshape(-1), weights=wrong.sum(axis=0).reshape(-1))
    elements = np.bincount(lines.reshape(-1)) * wrong.shape[0]
    return [Part(int(n), int(n), int(broken[n]), int(elements[n])) for n in np.flatnonzero(broken)]


def element_offsets(shape: Sequence[int], layout: MemoryLayout) -> NDArray[np.int64]:
    """The byte offset of each element (C, H, W) of one sample in its NC1HWC2 memory."""
    channels, height, width = shape
    pixels = layout.row_pixels or width
    c, h, w = np.ogrid[:channels, :height, :width]
    element = ((c // layout.atom * height + h) * pixels + w) * layout.atom + c % layout.atom
    return np.asarray(element * layout.element_bytes, np.int64)


def _byte_range(lines: Part) -> str:
    return f"{lines.first * LINE_BYTES:#x}-{(lines.last + 1) * LINE_BYTES - 1:#x}"


def _runs(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Neighbours joined."""
    joined: list[Part] = []
    for part in parts:
        if joined and part.first == joined[-1].last + 1:
            last = joined[-1]
            part = Part(last.first, part.last, last.wrong + part.wrong, last.count + part.count)
            joined[-1] = part
        else:
            joined.append(part)
    return tuple(joined)


def _listed(parts: Sequence[Part]) -> str:
    shown = ", ".join(str(part) for part in parts[:_SHOWN])
    return f"{shown}, and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else shown
