"""Which weights stay: pure functions on weights (Cout, Cin, ...), by magnitude.

The masks have the structure of the vendor's pruning tool (autosparsity, observed on its cp311 wheel):

- along one axis, each run of four neighbouring channels at one place of the other axis and of the kernel
  keeps its two largest weights;
- along both, each block of 4 x 4 channels at one place of the kernel keeps a grid of two rows (output
  channels) and two columns (input channels). Mode 2 takes first the two columns with the largest sum of
  magnitudes, then within them the two largest rows; mode 3 first the rows, then the columns. Which grid the
  vendor's tool takes is not known (it is not the largest one), so that 16:4 masks are alike in structure
  only.

A direction that is no multiple of four is filled up with zeros, which never win over a weight. Of equal
magnitudes the first stays. Weights that stay keep their value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError
from pytest_rknpu.sparsity.modes import GROUP, KEPT, MODES, Axis, Mode

Weights = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]


def prune(weights: Weights, mode: Mode) -> Weights:
    """A copy with the weights zeroed that ``mask`` drops; shape and dtype stay. Raises as ``mask``."""
    return np.where(mask(weights, mode), weights, weights.dtype.type(0))


def mask(weights: Weights, mode: Mode) -> Mask:
    """True where a weight stays, in the shape of ``weights`` (Cout, Cin, ...).

    ModelError: fewer than two dimensions, no elements, integers, or numbers that are not finite.
    """
    return mask_along(weights, MODES[mode].axes)


def mask_along(weights: Weights, axes: tuple[Axis, ...]) -> Mask:
    """The mask that prunes ``axes`` in this order; none at all keeps everything. Raises as ``mask``."""
    _refuse_unfit(weights)
    blocks = _blocks(np.abs(weights.astype(np.float64)))
    if len(axes) == 1:
        kept = _largest(blocks, _IN_BLOCK[axes[0]])
    else:
        kept = np.ones(blocks.shape, dtype=np.bool_)
        for axis in axes:
            other = _IN_BLOCK[Axis.OUTPUT if axis is Axis.INPUT else Axis.INPUT]
            sums = (blocks * kept).sum(axis=other, keepdims=True)
            kept = kept & _largest(sums, _IN_BLOCK[axis])
    return _unblocked(kept, weights.shape)


def _refuse_unfit(weights: Weights) -> None:
    if weights.ndim < 2 or weights.size == 0:
        raise ModelError(f"weights are (Cout, Cin, ...), not of shape {weights.shape}")
    if not np.issubdtype(weights.dtype, np.floating):
        raise ModelError(
            f"weights are pruned as floating-point numbers, before quantisation; got {weights.dtype}"
        )
    if not np.isfinite(weights).all():
        raise ModelError(f"{int((~np.isfinite(weights)).sum())} of {weights.size} weights are not finite")


#: Position of each axis within a block, in what ``_blocks`` returns.
_IN_BLOCK = {Axis.OUTPUT: 1, Axis.INPUT: 3}


def _blocks(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(Cout, Cin, ...) as (Cout / 4, 4, Cin / 4, 4, kernel places), filled up with zeros."""
    rows, columns = weights.shape[:2]
    flat = weights.reshape(rows, columns, -1)
    filled = np.pad(flat, ((0, -rows % GROUP), (0, -columns % GROUP), (0, 0)))
    return filled.reshape(filled.shape[0] // GROUP, GROUP, filled.shape[1] // GROUP, GROUP, flat.shape[2])


def _unblocked(kept: Mask, shape: tuple[int, ...]) -> Mask:
    rows, columns = kept.shape[0] * GROUP, kept.shape[2] * GROUP
    return kept.reshape(rows, columns, -1)[: shape[0], : shape[1]].reshape(shape)


def _largest(values: NDArray[np.float64], axis: int) -> Mask:
    """True at the two largest of the four along ``axis``; of equal ones the first."""
    order = np.argsort(-values, axis=axis, kind="stable")
    kept = np.zeros(values.shape, dtype=np.bool_)
    np.put_along_axis(kept, np.take(order, range(KEPT), axis=axis), True, axis=axis)
    return kept
