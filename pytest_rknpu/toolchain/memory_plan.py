"""MEM-12: whether the compiler's memory plan puts two tensors that are needed at one time into one place.

A tensor is needed from the layer that writes it to its last reader, an input from the start, an output to the
end. Whether two may share memory is not only a matter of time: an operator can work in place, and the parts of
one Concat or Split are slices of the whole. All of it is told from the log and the fused graph; nothing guesses a
producer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import INPUT, OUTPUT, SCRATCH, FusedGraph, producers
from pytest_rknpu.toolchain.log_rows import TensorRead

#: Operators seen to write their result into the very place of their input.
IN_PLACE = frozenset({"Relu", "Reshape", "Transpose", "Concat"})
CONCAT, SPLIT = "Concat", "Split"


@dataclass(frozen=True)
class Tensor:
    """Bytes [start, end) that are needed from layer ``born`` to layer ``dies``, both inclusive.

    ``scratch``: used within one layer only.
    """

    name: str
    start: int
    end: int
    born: int
    dies: int
    scratch: bool = False

    def holds(self, other: Tensor) -> bool:
        """Whether ``other`` lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def __str__(self) -> str:
        return f"{self.name!r} (layers {self.born}-{self.dies}, {self.start:#x}-{self.end:#x})"


@dataclass(frozen=True)
class Overlap:
    """Two tensors that are both needed at layer ``layer`` and share ``shared`` bytes."""

    first: Tensor
    second: Tensor
    layer: int
    shared: int

    def __str__(self) -> str:
        return f"{self.first} and {self.second} share {self.shared} bytes in layer {self.layer}"


@dataclass(frozen=True)
class PlanCheck:
    """``findings`` says in words what is wrong with a plan (empty: nothing), ``overlaps`` is part of it.

    ``tensors`` were judged. Those in ``unknown`` have no known producer and were judged from their first
    reader on.
    """

    tensors: tuple[Tensor, ...]
    unknown: tuple[str, ...]
    overlaps: tuple[Overlap, ...]
    findings: tuple[str, ...]


def check_plan(plan: Plan, graph: FusedGraph | None) -> PlanCheck:
    """Judges the plan of one input shape. Without ``graph`` every producer is unknown."""
    known = producers(plan, graph) if graph else {}
    tensors = _tensors(plan, known)
    readers: dict[int, set[str]] = defaultdict(set)
    for read in plan.reads:
        readers[read.id].add(read.tensor)
    overlaps = tuple(
        overlap
        for first, second in combinations(tensors, 2)
        if (overlap := _overlap(first, second)) and not _is_legal(overlap, plan, tensors, readers)
    )
    unknown = tuple(t.name for t in tensors if not t.scratch and t.name not in known and t.born)
    findings = (*_scattered(plan), *_wrong_end(plan), *map(str, overlaps))
    return PlanCheck(tensors, unknown, overlaps, findings)


def _tensors(plan: Plan, known: Mapping[str, int]) -> tuple[Tensor, ...]:
    last = max((layer.id for layer in plan.layers), default=0)
    inputs = {layer.name.partition(":")[2] for layer in plan.layers if layer.op_type == INPUT}
    tensors = []
    for name, reads in _reads(plan).items():
        if SCRATCH.search(name):
            places = {(r.id, r.placement.start, r.placement.end) for r in reads}
            tensors += [Tensor(name, start, end, layer, layer, True) for layer, start, end in sorted(places)]
            continue
        place, layers = reads[0].placement, [read.id for read in reads]
        born = 0 if name in inputs else known.get(name, min(layers))
        dies = last if any(read.user == OUTPUT for read in reads) else max(layers)
        tensors.append(Tensor(name, place.start, place.end, born, dies))
    return tuple(tensors)


def _reads(plan: Plan) -> Mapping[str, list[TensorRead]]:
    reads: dict[str, list[TensorRead]] = defaultdict(list)
    for read in plan.reads:
        reads[read.tensor].append(read)
    return reads


def _overlap(first: Tensor, second: Tensor) -> Overlap | None:
    born, dies = max(first.born, second.born), min(first.dies, second.dies)
    start, end = max(first.start, second.start), min(first.end, second.end)
    return Overlap(first, second, born, end - start) if born <= dies and start < end else None


def _is_legal(
    overlap: Overlap, plan: Plan, tensors: Sequence[Tensor], readers: Mapping[int, set[str]]
) -> bool:
    """Whether the two are input and output of a layer that works in place, or slices of one tensor."""
    earlier, later = sorted((overlap.first, overlap.second), key=lambda tensor: tensor.born)
    if earlier.scratch or later.scratch:
        return False
    if earlier.born < later.born and earlier.name in readers[later.born]:
        return _meet_legally(earlier, later, plan)
    return _are_parts(earlier, later, plan, tensors, readers)


def _meet_legally(source: Tensor, result: Tensor, plan: Plan) -> bool:
    """``result`` is written by a layer that reads ``source``."""
    layer = plan.layer(result.born)
    operator = layer.op_type if layer else ""
    if operator in IN_PLACE and source.dies == result.born and source.holds(result) and result.holds(source):
        return True
    return (operator == CONCAT and result.holds(source)) or (operator == SPLIT and source.holds(result))


def _are_parts(
    first: Tensor, second: Tensor, plan: Plan, tensors: Sequence[Tensor], readers: Mapping[int, set[str]]
) -> bool:
    """Two inputs of one Concat, in its output: the compiler lists one of them with the place of the whole."""
    for layer in plan.layers:
        if layer.op_type == CONCAT and {first.name, second.name} <= readers[layer.id]:
            wholes = [t for t in tensors if t.born == layer.id and t.holds(first) and t.holds(second)]
            if any(first.holds(whole) or second.holds(whole) for whole in wholes):
                return True
    return False


def _scattered(plan: Plan) -> list[str]:
    """A tensor is in one place, whoever reads it; scratch memory is another's each time."""
    found = []
    for name, reads in _reads(plan).items():
        places = sorted({(read.placement.start, read.placement.end) for read in reads})
        if len(places) > 1 and not SCRATCH.search(name):
            found.append(
                f"{name!r} is read from several places: " + ", ".join(f"{a:#x}-{b:#x}" for a, b in places)
            )
    return found


def _wrong_end(plan: Plan) -> list[str]:
    """The arena's end is the printed internal size.

    It starts at 0, or, in the arena that it shares with the weights (RV1103, RV1106), where they end.
    """
    if not plan.reads:
        return []
    end = max(read.placement.end for read in plan.reads)
    start = min(read.placement.start for read in plan.reads)
    total = plan.internal_total
    if min(abs(end - total.bytes), abs(end - start - total.bytes)) <= total.rounding:
        return []
    return [
        f"the internal tensors reach from {start:#x} to {end:#x}, the log's internal size is {total.text}"
    ]
