"""Which layers may be pruned, and which the guide says run sparse: two tables of limits, as data.

``PRUNING`` is what the vendor's pruning tool leaves out (guide 4.1.7, table 4-9; observed on its cp311
wheel). ``INFERENCE`` is what the guide asks of a layer that shall run sparse: Conv2d of one group (or Linear,
which the compiler turns into one), int8, input and output channels multiples of 32.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.sparsity.layers import Layer
from pytest_rknpu.sparsity.modes import MODES, Axis, Mode

#: An axis of no more channels is left out by the pruning tool.
TOO_FEW_CHANNELS = 32
#: Both channel counts are multiples of this where the guide promises sparse inference.
ALIGNMENT = 32
WHITELIST = ("Conv2d", "Linear")


@dataclass(frozen=True)
class Selection:
    """Which layers to prune, as in ``sparsity_model``: by type, then by name.

    ``allowed`` None means all; ``disallowed`` always wins.
    """

    whitelist: tuple[str, ...] = WHITELIST
    allowed: tuple[str, ...] | None = None
    disallowed: tuple[str, ...] = ()

    def require_names(self, layers: Iterable[Layer]) -> None:
        """ConfigurationError: a name that no layer of the model has."""
        known = [layer.name for layer in layers]
        for name in (*(self.allowed or ()), *self.disallowed):
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f" (did you mean {near[0]!r}?)" if near else f"; there are {', '.join(known)}"
                raise ConfigurationError(f"there is no layer {name!r} with weights in the model{hint}")

    def excludes(self, layer: Layer) -> str | None:
        """Why the selection leaves a layer out, or None."""
        if layer.type not in self.whitelist:
            return f"{layer.type} is not in the whitelist ({', '.join(self.whitelist)})"
        if layer.name in self.disallowed:
            return "its name is among the disallowed"
        if self.allowed is not None and layer.name not in self.allowed:
            return "its name is not among the allowed"
        return None


@dataclass(frozen=True)
class Limit:
    """``broken`` tells whether a layer is outside; ``reason`` then says so, with the layer's own figures."""

    name: str
    broken: Callable[[Layer], bool]
    reason: Callable[[Layer], str]


PRUNING: tuple[Limit, ...] = (
    Limit("groups", lambda layer: layer.groups > 1, lambda layer: f"it has {layer.groups} groups"),
    Limit(
        "floating point",
        lambda layer: layer.dtype not in {"float", "float16", "double"},
        lambda layer: f"its weights are {layer.dtype}: prune before quantisation",
    ),
)

INFERENCE: tuple[Limit, ...] = (
    Limit(
        "type",
        lambda layer: layer.type not in WHITELIST,
        lambda layer: f"{layer.type} is neither Conv2d nor Linear",
    ),
    Limit("groups", lambda layer: layer.groups > 1, lambda layer: f"it has {layer.groups} groups"),
    Limit(
        "output channels",
        lambda layer: layer.shape[0] % ALIGNMENT != 0,
        lambda layer: f"{layer.shape[0]} output channels are no multiple of {ALIGNMENT}",
    ),
    Limit(
        "input channels",
        lambda layer: layer.shape[1] % ALIGNMENT != 0,
        lambda layer: f"{layer.shape[1]} input channels are no multiple of {ALIGNMENT}",
    ),
)


def reasons(layer: Layer, limits: Iterable[Limit]) -> list[str]:
    """Every limit that a layer breaks, in words; none: it is eligible."""
    return [limit.reason(layer) for limit in limits if limit.broken(layer)]


def prunable_axes(layer: Layer, mode: Mode) -> tuple[tuple[Axis, ...], list[str]]:
    """The axes that a mode prunes in a layer, in its order, and why others of its axes stay.

    Each axis is judged on its own: a 16:4 mode degrades to 4:2 where the other axis has too few channels.
    """
    axes, left = [], []
    for axis in MODES[mode].axes:
        channels = layer.shape[axis.value]
        if channels > TOO_FEW_CHANNELS:
            axes.append(axis)
        else:
            left.append(f"{channels} {axis} are no more than {TOO_FEW_CHANNELS}")
    return tuple(axes), left
