"""Whether layers run sparse: what the guide promises, what each compiler was seen to do, and the judgement.

The compiler looks at the zeros of each layer and prints in its build log what it made of them (column
SparseRatio). Two tables stand against each other here:

- the guide's promise (4.1.7): a pruned layer within its limits runs sparse, one outside stays dense;
- ``OBSERVED``, by toolkit version and SoC: what RKNN-Toolkit2 was seen to do on x86-64 hosts.

A layer that does what is promised is right. One that does not, but does what was observed of this very
version, is a known deviation. Anything else is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from pytest_rknpu.errors import ConformanceFailure, HarnessError, ToolkitError, Waived
from pytest_rknpu.sparsity.eligibility import INFERENCE, reasons
from pytest_rknpu.sparsity.layers import Layer
from pytest_rknpu.sparsity.modes import Axis, Kind

INT8, FLOAT16 = "INT8", "FLOAT16"


class Ratio(Enum):
    """What the column SparseRatio can say; the values are its words."""

    DENSE = "0%"
    INPUT = "50%(IC)"
    OUTPUT = "50%(OC)"
    BOTH = "75%"

    def __str__(self) -> str:
        return self.value


def ratio_of(text: str | None) -> Ratio:
    """The meaning of a cell; None (no such column, or no convolution) is dense. ToolkitError: a new word."""
    if text is None:
        return Ratio.DENSE
    try:
        return Ratio(text)
    except ValueError:
        known = ", ".join(ratio.value for ratio in Ratio)
        raise ToolkitError(f"the build log says SparseRatio {text!r}; known: {known}") from None


_RATIO_OF_AXES: Mapping[frozenset[Axis], Ratio] = MappingProxyType(
    {
        frozenset(): Ratio.DENSE,
        frozenset({Axis.INPUT}): Ratio.INPUT,
        frozenset({Axis.OUTPUT}): Ratio.OUTPUT,
        frozenset(Axis): Ratio.BOTH,
    }
)
_AXES_OF_RATIO = {ratio: axes for axes, ratio in _RATIO_OF_AXES.items()}
AXES_OF: Mapping[Kind, frozenset[Axis]] = MappingProxyType(
    {
        Kind.NONE: frozenset(),
        Kind.INPUT: frozenset({Axis.INPUT}),
        Kind.OUTPUT: frozenset({Axis.OUTPUT}),
        Kind.GRID: frozenset(Axis),
    }
)


@dataclass(frozen=True)
class Takes:
    """When a compiler takes one axis of a layer of one group: channel counts and data types."""

    outputs_multiple_of: int
    inputs_multiple_of: int
    inputs_at_least: int
    data_types: frozenset[str]

    def fits(self, layer: Layer, data_type: str) -> bool:
        outputs, inputs = layer.shape[:2]
        return (
            outputs % self.outputs_multiple_of == 0
            and inputs % self.inputs_multiple_of == 0
            and inputs >= self.inputs_at_least
            and data_type in self.data_types
        )


@dataclass(frozen=True)
class Compiler:
    """What a toolkit version was seen to do for a SoC. An axis that is missing is never taken.

    ``types`` are the kinds of layers that it takes. ``less`` and ``more`` say in words where it does less, or
    more, than the guide promises.
    """

    axes: Mapping[Axis, Takes]
    types: frozenset[str]
    less: str
    more: str


# Seen along output channels: 5 inputs and more are taken, 4 and fewer are not.
_ALONG_INPUTS = Takes(16, 32, 32, frozenset({INT8}))
_ALONG_OUTPUTS = Takes(16, 1, 5, frozenset({INT8, FLOAT16}))
_TYPES = frozenset({"Conv2d", "Conv1d", "Linear"})
_MORE_ALONG_OUTPUTS = (
    "along output channels it takes any Conv1d, Conv2d or Linear of one group with outputs in multiples of "
    "16 and at least 5 inputs, also in float16"
)
_FLATTENED = (
    "neighbouring inputs of a linear layer on a flattened picture are no neighbouring channels of the "
    "convolution that the compiler makes of it"
)

_RK3576 = Compiler(
    {Axis.INPUT: _ALONG_INPUTS, Axis.OUTPUT: _ALONG_OUTPUTS},
    _TYPES,
    less=_FLATTENED,
    more="along input channels it takes int8 with inputs in multiples of 32 and outputs in multiples of 16; "
    f"{_MORE_ALONG_OUTPUTS}",
)
_RV1126B = Compiler(
    {Axis.OUTPUT: _ALONG_OUTPUTS},
    _TYPES,
    less="it finds 4:2 along input channels in the weights and builds the layer dense all the same; "
    "of 16:4 it uses the output half alone",
    more=_MORE_ALONG_OUTPUTS,
)

OBSERVED: Mapping[tuple[str, str], Compiler] = MappingProxyType(
    {
        **{(toolkit, "rk3576"): _RK3576 for toolkit in ("2.2.0", "2.3.0", "2.3.2", "2.5.0")},
        **{(toolkit, "rv1126b"): _RV1126B for toolkit in ("2.3.2", "2.5.0")},
    }
)
"""By (toolkit version, SoC); each was run on the networks of ``models/recipes/sparse_probes.py``. RV1126B is
unknown to versions before 2.3.2."""

IGNORES_SPARSE_INFER = frozenset(
    (toolkit, soc) for toolkit in ("2.2.0", "2.3.0", "2.3.2", "2.5.0") for soc in ("rv1103b", "rv1106b")
)
"""SoCs without sparse inference for which a toolkit version takes ``sparse_infer=True`` without a word."""


@dataclass(frozen=True)
class Shown:
    """One layer, the pattern that its weights hold, its data type in the log, and what the log says of it.

    ``flattened``: a linear layer on a flattened picture. Four neighbouring inputs of its are no neighbouring
    channels of the convolution that the compiler makes of it.
    """

    layer: Layer
    kind: Kind
    data_type: str
    ratio: Ratio
    flattened: bool = False

    @property
    def outside(self) -> list[str]:
        """Which of the guide's limits for sparse inference the layer breaks, in words."""
        return reasons(self.layer, INFERENCE)


def promised(one: Shown) -> Ratio:
    """What the guide says of such a layer: as its weights are, dense outside the limits."""
    if one.data_type != INT8 or one.outside:
        return Ratio.DENSE
    return _RATIO_OF_AXES[AXES_OF[one.kind]]


def observed(one: Shown, compiler: Compiler) -> Ratio:
    """What ``compiler`` was seen to make of such a layer."""
    if one.layer.groups > 1 or one.layer.type not in compiler.types:
        return Ratio.DENSE
    taken = {axis for axis, takes in compiler.axes.items() if takes.fits(one.layer, one.data_type)}
    if one.flattened:
        taken.discard(Axis.INPUT)
    return _RATIO_OF_AXES[AXES_OF[one.kind] & frozenset(taken)]


def outdated(one: Shown, toolkit: str, soc: str) -> bool:
    """Whether a layer does as promised where another thing was observed of this toolkit version."""
    compiler = OBSERVED.get((toolkit, soc))
    right = one.ratio is promised(one)
    return right and compiler is not None and observed(one, compiler) is not one.ratio


def judge(shown: Sequence[Shown], toolkit: str, soc: str) -> None:
    """Returns where every layer does what the guide promises.

    ConformanceFailure: a layer deviates in a way that is not known of this toolkit version. Waived: all
    deviations are known. HarnessError: no layer to judge, or one that no longer deviates as this version was
    seen to, so that ``OBSERVED`` is wrong.
    """
    if not shown:
        raise HarnessError("nothing was judged: the model has no layers with weights")
    compiler = OBSERVED.get((toolkit, soc))
    wrong = [one for one in shown if one.ratio is not promised(one)]
    known = [one for one in wrong if compiler is not None and one.ratio is observed(one, compiler)]
    unknown = [one for one in wrong if one not in known]
    stale = [one for one in shown if outdated(one, toolkit, soc)]
    who = f"RKNN-Toolkit2 {toolkit} for {soc}"
    if unknown:
        raise ConformanceFailure(f"{who}: {_words(unknown)}")
    if stale:
        raise HarnessError(
            f"{who} does as the guide says where another thing was observed of this version; correct "
            f"sparsity/engagement.py: {_words(stale)}"
        )
    if known and compiler is not None:
        raise Waived(f"{who}: {_words(known)}. Known: {_reasons(known, compiler)}")


def _words(deviations: Sequence[Shown]) -> str:
    """Layers that do the same in one sentence."""
    layers: dict[str, list[str]] = {}
    for one in deviations:
        outside = [] if one.kind is Kind.NONE else one.outside
        outside += ["it reads a flattened picture"] if one.flattened else []
        limits = f" ({', '.join(outside)})" if outside else ""
        does = f"weights {one.kind}, {one.data_type.lower()}: SparseRatio {one.ratio}, not {promised(one)}"
        layers.setdefault(does, []).append(f"{one.layer.name}{limits}")
    return "; ".join(f"{', '.join(names)}: {does}" for does, names in layers.items())


def _reasons(known: Sequence[Shown], compiler: Compiler) -> str:
    """Why, each reason once: the compiler leaves an axis that the guide promises, or takes one more."""
    why: dict[str, None] = {}
    for one in known:
        left = _AXES_OF_RATIO[promised(one)] - _AXES_OF_RATIO[one.ratio]
        why[compiler.less if left else compiler.more] = None
    return "; ".join(why)
