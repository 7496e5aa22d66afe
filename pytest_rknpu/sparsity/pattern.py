"""Which pattern a tensor holds, judged by its zeros alone, as the compiler does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError
from pytest_rknpu.sparsity.modes import GROUP, KEPT, Axis, Kind


@dataclass(frozen=True)
class Pattern:
    """What weights of ``shape`` (Cout, Cin, ...) hold: each of ``kinds``; ``zeros`` is a share of all.

    A 16:4 tensor also holds 4:2 along both axes.
    """

    kinds: frozenset[Kind]
    zeros: float
    shape: tuple[int, ...]

    @property
    def kind(self) -> Kind:
        """The strongest: 16:4, then 4:2 along input channels, then along output channels.

        Weights that are 4:2 along both axes but no grid count as input: RKNN-Toolkit2 2.5.0 takes them so.
        """
        strongest = (Kind.GRID, Kind.INPUT, Kind.OUTPUT)
        return next((kind for kind in strongest if kind in self.kinds), Kind.NONE)

    def __str__(self) -> str:
        return f"{self.kind} ({self.zeros:.0%} zeros)"


def sparsity_of(weights: NDArray[Any]) -> Pattern:
    """The patterns of weights (Cout, Cin, ...) of any real dtype; integers are taken as zero point 0.

    One group with three of four weights is enough to break a pattern. An axis of two channels or fewer holds
    none along it: nothing had to go. Directions that are no multiple of four are filled up with zeros.

    ModelError: fewer than two dimensions, or no elements.
    """
    if weights.ndim < 2 or weights.size == 0:
        raise ModelError(f"weights are (Cout, Cin, ...), not of shape {weights.shape}")
    filled = weights.reshape(*weights.shape[:2], -1) != 0
    kinds = set()
    if all(size > KEPT for size in weights.shape[:2]) and _is_grid(filled):
        kinds.add(Kind.GRID)
    for axis, kind in ((Axis.INPUT, Kind.INPUT), (Axis.OUTPUT, Kind.OUTPUT)):
        if weights.shape[axis.value] > KEPT and bool((_counts(filled, axis) <= KEPT).all()):
            kinds.add(kind)
    return Pattern(frozenset(kinds), float((~filled).mean()), weights.shape)


def _is_grid(filled: NDArray[np.bool_]) -> bool:
    """Whether each 4 x 4 block has its weights in at most two rows and two columns."""
    for axis, other in ((Axis.OUTPUT, Axis.INPUT), (Axis.INPUT, Axis.OUTPUT)):
        # A row of a block is used if any of its four columns is; so for columns.
        used = _grouped(filled, other).any(axis=other.value + 1)
        if bool((_counts(used, axis) > KEPT).any()):
            return False
    return True


def _counts(filled: NDArray[np.bool_], axis: Axis) -> NDArray[np.int_]:
    counts: NDArray[np.int_] = _grouped(filled, axis).sum(axis=axis.value + 1)
    return counts


def _grouped(filled: NDArray[np.bool_], axis: Axis) -> NDArray[np.bool_]:
    """``axis`` split into (groups, 4), filled up with zeros: one dimension more, behind ``axis``."""
    position = axis.value
    padding = [(0, 0)] * filled.ndim
    padding[position] = (0, -filled.shape[position] % GROUP)
    padded = np.pad(filled, padding)
    shape = list(padded.shape)
    shape[position : position + 1] = [shape[position] // GROUP, GROUP]
    return padded.reshape(shape)
