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

    ``types`` are the kinds of layers that it takes; ``differs`` says in words where that is not the guide.
    """

    axes: Mapping[Axis, Takes]
    types: frozenset[str]
    differs: str


_ALONG_INPUTS = Takes(16, 32, 32, frozenset({INT8}))
_ALONG_OUTPUTS = Takes(16, 1, 8, frozenset({INT8, FLOAT16}))
_TYPES = frozenset({"Conv2d", "Conv1d", "Linear"})
_BEYOND = (
    "along output channels it takes any Conv1d, Conv2d or Linear of one group with outputs in multiples of "
    "16 and at least 8 inputs, also in float16"
)

OBSERVED: Mapping[tuple[str, str], Compiler] = MappingProxyType(
    {
        ("2.5.0", "rk3576"): Compiler(
            {Axis.INPUT: _ALONG_INPUTS, Axis.OUTPUT: _ALONG_OUTPUTS},
            _TYPES,
            "RKNN-Toolkit2 2.5.0 for rk3576 asks less than the guide: "
            f"{_BEYOND}; along input channels (int8 only) inputs in multiples of 32, outputs of 16",
        ),
        ("2.5.0", "rv1126b"): Compiler(
            {Axis.OUTPUT: _ALONG_OUTPUTS},
            _TYPES,
            "RKNN-Toolkit2 2.5.0 for rv1126b finds 4:2 along input channels in the weights, but builds the "
            f"layer dense, and of 16:4 it uses the output half alone; {_BEYOND}",
        ),
    }
)
"""By (toolkit version, SoC); measured with networks like those of ``models/recipes/sparse_probes.py``."""


def promised(layer: Layer, kind: Kind, data_type: str) -> Ratio:
    """What the guide says of a layer whose weights hold ``kind``; dense outside its limits."""
    if data_type != INT8 or reasons(layer, INFERENCE):
        return Ratio.DENSE
    return _RATIO_OF_AXES[AXES_OF[kind]]


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


def observed(one: Shown, compiler: Compiler) -> Ratio:
    """What ``compiler`` was seen to make of such a layer."""
    if one.layer.groups > 1 or one.layer.type not in compiler.types:
        return Ratio.DENSE
    taken = {axis for axis, takes in compiler.axes.items() if takes.fits(one.layer, one.data_type)}
    if one.flattened:
        taken.discard(Axis.INPUT)
    return _RATIO_OF_AXES[AXES_OF[one.kind] & frozenset(taken)]


def judge(shown: Sequence[Shown], toolkit: str, soc: str) -> None:
    """Returns where every layer does what the guide promises.

    ConformanceFailure: a layer deviates in a way that is not known of this toolkit version. Waived: all
    deviations are known. HarnessError: no layer to judge, or one that no longer deviates as this version was
    seen to, so that ``OBSERVED`` is wrong.
    """
    if not shown:
        raise HarnessError("nothing was judged: the model has no layers with weights")
    compiler = OBSERVED.get((toolkit, soc))
    known: list[str] = []
    unknown: list[str] = []
    stale: list[str] = []
    for one in shown:
        wanted = promised(one.layer, one.kind, one.data_type)
        seen = wanted if compiler is None else observed(one, compiler)
        if one.ratio is not wanted:
            (known if one.ratio is seen else unknown).append(_words(one, wanted))
        elif seen is not wanted:
            stale.append(_words(one, seen))
    if unknown:
        raise ConformanceFailure(f"{soc}, RKNN-Toolkit2 {toolkit}: {'; '.join(unknown)}")
    if stale:
        raise HarnessError(
            f"{soc}, RKNN-Toolkit2 {toolkit} does as the guide says where another thing was observed of this "
            f"version; correct sparsity/engagement.py: {'; '.join(stale)}"
        )
    if known and compiler is not None:
        raise Waived(f"{soc}: {'; '.join(known)}. Known: {compiler.differs}")


def _words(one: Shown, wanted: Ratio) -> str:
    outside = reasons(one.layer, INFERENCE) if one.kind is not Kind.NONE else []
    outside += ["it reads a flattened picture"] if one.flattened else []
    limits = f" ({', '.join(outside)})" if outside else ""
    return (
        f"layer {one.layer.name!r}{limits}, weights {one.kind}, {one.data_type.lower()}: "
        f"SparseRatio {one.ratio}, not {wanted}"
    )
