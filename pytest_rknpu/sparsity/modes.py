"""The four pruning modes and the patterns that they leave, as data.

Modes are numbered as in ``autosparsity.sparsity.sparsity_model(mode=...)`` (guide 4.1.7). Weights are (Cout,
Cin, ...): convolutions have the kernel behind, linear layers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

#: Channels are looked at in runs of this many neighbours ...
GROUP = 4
#: ... of which this many stay.
KEPT = 2


class Axis(Enum):
    """A direction of the weights; the value is its position in (Cout, Cin, ...)."""

    OUTPUT = 0
    INPUT = 1

    def __str__(self) -> str:
        return f"{self.name.lower()} channels"


class Kind(Enum):
    """What a tensor holds. ``value`` is its name in reports."""

    NONE = "none"
    INPUT = "4:2 along input channels"
    OUTPUT = "4:2 along output channels"
    GRID = "16:4"

    def __str__(self) -> str:
        return self.value


class Mode(IntEnum):
    """The guide's numbers."""

    INPUT = 0
    OUTPUT = 1
    INPUT_THEN_OUTPUT = 2
    OUTPUT_THEN_INPUT = 3


@dataclass(frozen=True)
class ModeFacts:
    """``axes`` are pruned in this order; ``zeros`` is the share that is then zero in aligned weights."""

    axes: tuple[Axis, ...]
    kind: Kind
    zeros: float


MODES: Mapping[Mode, ModeFacts] = MappingProxyType(
    {
        Mode.INPUT: ModeFacts((Axis.INPUT,), Kind.INPUT, 0.5),
        Mode.OUTPUT: ModeFacts((Axis.OUTPUT,), Kind.OUTPUT, 0.5),
        Mode.INPUT_THEN_OUTPUT: ModeFacts((Axis.INPUT, Axis.OUTPUT), Kind.GRID, 0.75),
        Mode.OUTPUT_THEN_INPUT: ModeFacts((Axis.OUTPUT, Axis.INPUT), Kind.GRID, 0.75),
    }
)
"""What each mode does (guide 4.1.7)."""


def kind_of(axes: tuple[Axis, ...]) -> Kind:
    """The pattern that pruning ``axes`` leaves: a mode whose one axis is left out degrades to the other's."""
    if len(axes) > 1:
        return Kind.GRID
    if not axes:
        return Kind.NONE
    return Kind.INPUT if axes[0] is Axis.INPUT else Kind.OUTPUT
