"""What the compiler's verbose build log says of a model: layers, memory plan, weights and totals.

Source: RKNN-Toolkit2's own output (level D, printed by librknnc); it is documented nowhere, so the headers of
its tables are compared word by word and any other layout is refused. Real logs of several SoCs and toolkit
versions are among this package's tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.log_lines import numbered_lines
from pytest_rknpu.toolchain.log_rows import (
    CONST_HEADER,
    FEATURE_HEADER,
    LAYER_HEADER,
    SPARSE_LAYER_HEADER,
    Layer,
    MemoryTotal,
    TensorRead,
    UnknownRow,
    Weight,
    layer_row,
    memory_total,
    read_row,
    weight_row,
)

_Row = TypeVar("_Row")

_LAYERS, _FEATURES, _CONSTANTS = (
    "Network Layer Information Table",
    "Feature Tensor Information Table",
    "Const Tensor Information Table",
)
_INTERNAL, _WEIGHT = "Total Internal Memory Size:", "Total Weight Memory Size:"
#: What the compiler puts before each line of its own, and before each line of a table.
_PREFIX = re.compile(r"^D RKNN: \[[0-9:.]+\] ?")
_RULE = re.compile(r"^[-+]{8,}$")
_ADDRESSED = re.compile(r"\| 0x[0-9a-fA-F]+[* ]+0x")
_TOOLKIT = re.compile(r"^I rknn-toolkit2 version: (\S+)", re.MULTILINE)
_COMPILER = re.compile(r"librknnc version: (\S+)")


@dataclass(frozen=True)
class Plan:
    """The tables of one input shape.

    ``layers`` are in the order of execution; each input is an InputOperator, each output an OutputOperator.
    ``reads`` has a row per reader of a tensor; a tensor that nothing reads has none. Places of ``reads`` are
    bytes in the internal memory, those of ``weights`` in the weight memory; on RV1103 and RV1106 both are in
    one arena, the weights first.
    """

    layers: tuple[Layer, ...]
    reads: tuple[TensorRead, ...]
    weights: tuple[Weight, ...]
    internal_total: MemoryTotal
    weight_total: MemoryTotal

    @property
    def predicted_cycles(self) -> int:
        """Total cycles of the whole model, as the compiler predicts them."""
        return sum(layer.cycles.total for layer in self.layers)

    def layer(self, number: int) -> Layer | None:
        """The layer with this ID, or None."""
        return next((layer for layer in self.layers if layer.id == number), None)


@dataclass(frozen=True)
class BuildLog:
    """``plans`` has one entry per input shape (several with ``dynamic_input``), at least one."""

    plans: tuple[Plan, ...]
    toolkit_version: str | None
    compiler_version: str | None

    @property
    def plan(self) -> Plan:
        """The plan of a model with one input shape. ToolkitError: it has several."""
        if len(self.plans) != 1:
            raise ToolkitError(f"the build log holds the plans of {len(self.plans)} input shapes, not of one")
        return self.plans[0]


@dataclass(frozen=True)
class _Line:
    number: int
    text: str


def parse_build_log(text: str) -> BuildLog:
    """Reads the log of a successful verbose build (``Compiled.log``).

    ToolkitError: there is no layer table (the toolkit was not verbose, or failed), or a table has a layout
    that is not known; the message names the line.
    """
    lines = [_Line(number, _PREFIX.sub("", line).strip()) for number, line in numbered_lines(text)]
    starts = [position for position, line in enumerate(lines) if line.text == _LAYERS]
    if not starts:
        raise ToolkitError(f"the build log ({len(lines)} lines) has no {_LAYERS!r}: was the build verbose?")
    ends = [*starts[1:], len(lines)]
    plans = tuple(_plan(lines[start:end]) for start, end in zip(starts, ends, strict=True))
    toolkit, compiler = _TOOLKIT.search(text), _COMPILER.search(text)
    return BuildLog(plans, toolkit[1] if toolkit else None, compiler[1] if compiler else None)


def _plan(lines: Sequence[_Line]) -> Plan:
    header, layers = _table(lines, _LAYERS, [LAYER_HEADER, SPARSE_LAYER_HEADER])
    sparse = header == SPARSE_LAYER_HEADER
    _, reads = _table(lines, _FEATURES, [FEATURE_HEADER])
    # A model without constants has no table of them; but no row with addresses is left unread.
    addressed = sum(_ADDRESSED.search(line.text) is not None for line in lines)
    weights = _table(lines, _CONSTANTS, [CONST_HEADER])[1] if addressed != len(reads) else ()
    plan = Plan(
        _rows(layers, _LAYERS, lambda row: layer_row(row, sparse)),
        _rows(reads, _FEATURES, read_row),
        _rows(weights, _CONSTANTS, weight_row),
        _total(lines, _INTERNAL),
        _total(lines, _WEIGHT),
    )
    _require_whole(plan, lines[0].number)
    return plan


def _require_whole(plan: Plan, line: int) -> None:
    """Rows that were lost show: what is judged is all of the plan, or nothing.

    Layers are numbered from 0; each row of the other tables names a layer with its operator, and its size
    twice; convolutions have weights.
    """
    where = f"the build log, from line {line} on"
    users = {layer.id: layer.op_type for layer in plan.layers}
    if not users or sorted(users) != list(range(len(plan.layers))):
        raise ToolkitError(
            f"{where}: the layers are not numbered from 0 on: rows are missing, or there twice"
        )
    rows: tuple[TensorRead | Weight, ...] = (*plan.reads, *plan.weights)
    for row in rows:
        if users.get(row.id) != row.user:
            raise ToolkitError(
                f"{where}: {row.tensor!r} belongs to layer {row.id}, a {row.user}; the layer table says "
                f"{users.get(row.id, 'nothing of it')}"
            )
        if row.placement.end - row.placement.start != row.placement.size:
            raise ToolkitError(
                f"{where}: {row.tensor!r} lies from {row.placement.start:#x} to {row.placement.end:#x}, "
                f"which is not its size of {row.placement.size:#x}"
            )
    convolutions = [layer.name for layer in plan.layers if layer.op_type.startswith("Conv")]
    if convolutions and not plan.weights:
        raise ToolkitError(f"{where}: {convolutions[0]} has weights, but there is no {_CONSTANTS}")


def _table(lines: Sequence[_Line], title: str, headers: Sequence[str]) -> tuple[str, Sequence[_Line]]:
    """A table's header in single spaces, and its rows: title, rule, header, rule, rows, rule."""
    found = [position for position, line in enumerate(lines) if line.text == title]
    if len(found) != 1:
        what = "is missing" if not found else f"comes {len(found)} times"
        raise ToolkitError(f"the build log, from line {lines[0].number} on: the {title} {what}")
    following = iter(lines[found[0] + 1 :])
    above, header, below = (next(following, None) for _ in range(3))
    if above is None or header is None or below is None:
        raise ToolkitError(f"the build log ends in the head of the {title}")
    words = " ".join(header.text.split())
    if words not in headers or not _RULE.match(above.text) or not _RULE.match(below.text):
        raise _unknown(header, f"this is no known header of the {title}")
    return words, list(_until_rule(following, title))


def _until_rule(lines: Iterator[_Line], title: str) -> Iterator[_Line]:
    for line in lines:
        if _RULE.match(line.text):
            return
        yield line
    raise ToolkitError(f"the build log ends within the {title}")


def _rows(lines: Sequence[_Line], title: str, read: Callable[[str], _Row]) -> tuple[_Row, ...]:
    rows = []
    for line in lines:
        try:
            rows.append(read(line.text))
        except UnknownRow as error:
            raise _unknown(line, f"this is no row of the {title} ({error})") from None
    return tuple(rows)


def _total(lines: Sequence[_Line], label: str) -> MemoryTotal:
    for line in lines:
        if line.text.startswith(label):
            try:
                return memory_total(line.text.removeprefix(label).strip())
            except UnknownRow as error:
                raise _unknown(line, str(error)) from None
    raise ToolkitError(f"the build log, from line {lines[0].number} on: there is no {label!r}")


def _unknown(line: _Line, what: str) -> ToolkitError:
    return ToolkitError(f"the build log, line {line.number}: {what}: {line.text[:200]!r}")
