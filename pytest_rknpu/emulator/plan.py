"""Where each activation lies in the internal buffer: a plan with reuse, as RKNN-Toolkit2 makes one
("GreedyBySize").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True)
class Live:
    """One tensor to be placed: ``size`` in bytes, alive from step ``first`` to ``last``, both included."""

    size: int
    first: int
    last: int

    def meets(self, other: Live) -> bool:
        """Whether both are alive in some step. Inputs and output of a step are: nothing works in place."""
        return self.first <= other.last and other.first <= self.last


def aligned(size: int) -> int:
    """``size`` rounded up to the plan's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def place(tensors: Sequence[Live]) -> tuple[int, ...]:
    """Byte offsets for ``tensors``: no two that meet overlap; all are multiples of 64.

    The largest is placed first, each at the lowest offset that is free for as long as it lives.
    """
    offsets: dict[int, int] = {}
    for index in sorted(range(len(tensors)), key=lambda i: (-tensors[i].size, i)):
        tensor = tensors[index]
        taken = sorted(
            (offsets[other], offsets[other] + aligned(tensors[other].size))
            for other in offsets
            if tensor.meets(tensors[other])
        )
        offsets[index] = _first_gap(taken, aligned(tensor.size))
    return tuple(offsets[index] for index in range(len(tensors)))


def end_of(tensors: Sequence[Live], offsets: Sequence[int]) -> int:
    """The size in bytes of the buffer that the plan needs."""
    return max(
        (offset + aligned(tensor.size) for tensor, offset in zip(tensors, offsets, strict=True)), default=0
    )


def _first_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The lowest offset at which ``size`` bytes are free between the ``taken`` (start, end), sorted."""
    offset = 0
    for start, end in taken:
        if offset + size <= start:
            break
        offset = max(offset, end)
    return offset
