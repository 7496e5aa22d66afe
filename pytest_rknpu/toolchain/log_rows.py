"""One row of each table in the compiler's build log, and the totals below them.

Rows are split on white space: columns shift with long operator names. Names may be empty or hold spaces, so
a row is read from both its ends and the name is what is left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

Shape = tuple[int, ...]

#: The headers that RKNN-Toolkit2 2.2.0 to 2.5.0 print; ``SparseRatio`` only for SoCs with sparse inference.
#: White space between the words is not compared.
LAYER_HEADER = "ID OpType DataType Target InputShape OutputShape Cycles(DDR/NPU/Total) RW(KB) FullName"
SPARSE_LAYER_HEADER = LAYER_HEADER.replace(" RW(KB)", " SparseRatio RW(KB)")
FEATURE_HEADER = "ID User Tensor DataType DataFormat OrigShape NativeShape | [Start End) Size"
CONST_HEADER = "ID User Tensor DataType OrigShape | [Start End) Size"

#: Eighteen digits fit 64 bits; more is no number that a compiler prints.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,9})?")
_CYCLES = re.compile(r"(-?[0-9]{1,18})/(-?[0-9]{1,18})/(-?[0-9]{1,18})")
_SHAPE = re.compile(r"\(((?:-?[0-9]{1,18})(?:,-?[0-9]{1,18})*)?\)")
_RATIO = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)%(?:\((\w{1,8})\))?")
_ADDRESSES = re.compile(r"0x([0-9a-f]{1,16})(\*| +)0x([0-9a-f]{1,16}) +0x([0-9a-f]{1,16})", re.IGNORECASE)
_TOTAL = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(e\+[0-9]{2})?(B|KB|MB|GB)")
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_CUT, _NONE = ",...", "\\"
#: What the totals are printed with (the default of C++ streams).
_SIGNIFICANT_DIGITS = 6


class UnknownRow(ValueError):
    """A row that has no known layout; the message says which part."""


@dataclass(frozen=True)
class Cycles:
    """Predicted clock cycles: DDR traffic, NPU, in all; negative ones occur (compressed weights)."""

    ddr: int
    npu: int
    total: int


@dataclass(frozen=True)
class SparseRatio:
    """``text`` as printed ("50%(IC)"), ``share`` 0 to 1, ``axis`` "IC" or "OC", None if none is printed."""

    text: str
    share: float
    axis: str | None


@dataclass(frozen=True)
class Layer:
    """A row of the layer table.

    ``input_shapes`` holds data, weights and bias in turn; where ``inputs_cut`` (over 40 characters) the last
    ones are missing, likewise outputs. ``sparse_ratio`` is None where there is no column or nothing in it,
    ``rw_kb`` is KiB of memory traffic, ``name`` is "operator:name of its node" and can be empty.
    """

    id: int
    op_type: str
    data_type: str
    target: str
    input_shapes: tuple[Shape, ...]
    inputs_cut: bool
    output_shapes: tuple[Shape, ...]
    outputs_cut: bool
    cycles: Cycles
    sparse_ratio: SparseRatio | None
    rw_kb: float
    name: str


@dataclass(frozen=True)
class Placement:
    """Bytes [start, end) in an arena. ``at_end``: marked `*`, that is, it ends where the arena does."""

    start: int
    end: int
    size: int
    at_end: bool


@dataclass(frozen=True)
class TensorRead:
    """A row of the internal-tensor table: layer ``id`` (a ``user``) reads ``tensor`` from its place.

    ``native_shape`` is not to be trusted for float16 and int16.
    """

    id: int
    user: str
    tensor: str
    data_type: str
    data_format: str
    shape: Shape
    native_shape: Shape
    placement: Placement


@dataclass(frozen=True)
class Weight:
    """A row of the weight table: layer ``id`` (an operator ``user``) uses this constant."""

    id: int
    user: str
    tensor: str
    data_type: str
    shape: Shape
    placement: Placement


@dataclass(frozen=True)
class MemoryTotal:
    """A total, printed with six significant digits: the true one is within ``bytes`` +- ``rounding``."""

    text: str
    bytes: int
    rounding: int


def layer_row(row: str, sparse: bool) -> Layer:
    """Reads a layer; ``sparse``: the table has a SparseRatio column. UnknownRow: it is none."""
    words = row.split()
    if len(words) < 8:
        raise UnknownRow(f"{len(words)} words, a layer has at least 8")
    number, op_type, data_type, target, inputs, outputs, cycles = words[:7]
    rest = words[7:]
    ratio = None
    if sparse and rest[0] == _NONE:  # seen with compress_weight
        rest = rest[1:]
    elif sparse and "%" in rest[0]:
        ratio, rest = _ratio(rest[0]), rest[1:]
    if not rest:
        raise UnknownRow("no RW(KB)")
    input_shapes, inputs_cut = _shapes(inputs)
    output_shapes, outputs_cut = _shapes(outputs)
    return Layer(
        _whole(number),
        op_type,
        data_type,
        target,
        input_shapes,
        inputs_cut,
        output_shapes,
        outputs_cut,
        Cycles(*(int(part) for part in _match(_CYCLES, cycles, "cycles").groups())),
        ratio,
        float(_match(_DECIMAL, rest[0], "an RW(KB)")[0]),
        " ".join(rest[1:]),
    )


def read_row(row: str) -> TensorRead:
    """Reads a row of the internal-tensor table. UnknownRow: it is none."""
    words, placement = _left_and_right(row, 6)
    number, user, *name = words[:-4]
    data_type, data_format, shape, native = words[-4:]
    tensor = " ".join(name)
    return TensorRead(
        _whole(number), user, tensor, data_type, data_format, _shape(shape), _shape(native), placement
    )


def weight_row(row: str) -> Weight:
    """Reads a row of the weight table. UnknownRow: it is none."""
    words, placement = _left_and_right(row, 4)
    number, user, *name = words[:-2]
    data_type, shape = words[-2:]
    return Weight(_whole(number), user, " ".join(name), data_type, _shape(shape), placement)


def memory_total(text: str) -> MemoryTotal:
    """Reads "148KB", "27.125KB" or "1.04858e+06KB". UnknownRow: it is none."""
    found = _match(_TOTAL, text, "a size")
    number, unit = Fraction(found[1] + (found[2] or "")), _UNITS[found[3]]
    # Trailing zeros are not printed, so the size of the step follows from the number's size.
    step = Fraction(10) ** (_exponent(number) - _SIGNIFICANT_DIGITS + 1)
    return MemoryTotal(text, round(number * unit), ceil(step / 2 * unit) if number else 0)


def _exponent(number: Fraction) -> int:
    """Of the power of ten below ``number``, without the detour over floats; 0 for numbers below 1."""
    return len(str(int(number))) - 1


def _left_and_right(row: str, least: int) -> tuple[Sequence[str], Placement]:
    left, bar, right = row.rpartition("|")
    words = left.split()
    if not bar or len(words) < least:
        raise UnknownRow(f"{len(words)} words before '|', there are at least {least}")
    start, mark, end, size = _match(_ADDRESSES, right.strip(), "addresses").groups()
    return words, Placement(int(start, 16), int(end, 16), int(size, 16), mark == "*")


def _match(pattern: re.Pattern[str], word: str, what: str) -> re.Match[str]:
    found = pattern.fullmatch(word)
    if found is None:
        raise UnknownRow(f"{word[:60]!r} is not {what}")
    return found


def _whole(word: str) -> int:
    return int(_match(_WHOLE, word, "a whole number")[0])


def _ratio(word: str) -> SparseRatio:
    found = _match(_RATIO, word, "a SparseRatio")
    return SparseRatio(word, float(found[1]) / 100, found[2])


def _shape(word: str) -> Shape:
    inside = _match(_SHAPE, word, "a shape")[1]
    return tuple(int(part) for part in inside.split(",")) if inside else ()


def _shapes(word: str) -> tuple[tuple[Shape, ...], bool]:
    if word == _NONE:
        return (), False
    cut = word.endswith(_CUT)
    text = word.removesuffix(_CUT)
    shapes = tuple(_shape(f"({part})") for part in text[1:-1].split("),("))
    if text != ",".join(f"({','.join(map(str, shape))})" for shape in shapes):
        raise UnknownRow(f"{word[:60]!r} is no list of shapes")
    return shapes, cut
