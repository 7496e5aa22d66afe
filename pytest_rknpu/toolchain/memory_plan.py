"""MEM-12: whether the compiler's memory plan puts two tensors that are needed at one time into one place.

Weights are needed all the time, so that no two of them may meet, nor internal memory that shares their arena.

A tensor is needed from the layer that writes it to its last reader, an input from the start, an output to
the end. Whether two may share memory is not only a matter of time: an operator can work in place, and the
parts of one Concat or Split can be slices of the whole. All of it is told from the log and the fused graph;
nothing guesses a producer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from math import prod

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import CONCAT, INPUT, OUTPUT, SCRATCH, SPLIT, FusedGraph, producers
from pytest_rknpu.toolchain.log_rows import TensorRead

#: Operators seen to write their result into the very place of their input.
IN_PLACE = frozenset({"Relu", "Reshape", "Transpose", "Concat"})
#: Bytes of an element, by the log's names of types.
_BYTES = {
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FLOAT16", "BFLOAT16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FLOAT", "FLOAT32"), 4),
    "INT64": 8,
}
_NATIVE = "NC1HWC2"


@dataclass(frozen=True)
class Tensor:
    """Bytes [start, end) that are needed from layer ``born`` to layer ``dies``, both inclusive.

    ``scratch``: used within one layer only. ``grain``: a slice begins at a multiple of it, a row of pixels.
    """

    name: str
    start: int
    end: int
    born: int
    dies: int
    scratch: bool = False
    grain: int = 1

    def holds(self, other: Tensor) -> bool:
        """Whether ``other`` lies within this one."""
        return self.start <= other.start and other.end <= self.end

    def may_be_cut_into(self, other: Tensor) -> bool:
        """Whether ``other`` lies as a slice of this one can."""
        return self.holds(other) and (other.start - self.start) % other.grain == 0

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

    ``tensors`` were judged. Those in ``unknown`` have no known producer and were judged from the layer before
    their first reader on.
    """

    tensors: tuple[Tensor, ...]
    unknown: tuple[str, ...]
    overlaps: tuple[Overlap, ...]
    findings: tuple[str, ...]


def check_plan(plan: Plan, graph: FusedGraph | None, *, shared_arena: bool | None = None) -> PlanCheck:
    """Judges the plan of one input shape. Without ``graph`` every producer is unknown.

    ``shared_arena``: whether weights and internal memory are one arena, as on RV1103 and RV1106; None: not
    known, so that either is taken.
    """
    known = producers(plan, graph) if graph else {}
    readers: dict[int, set[str]] = defaultdict(set)
    for read in plan.reads:
        readers[read.id].add(read.tensor)
    tensors = _cut_slices(_tensors(plan, known), plan, readers)
    overlaps = tuple(
        overlap
        for first, second in combinations(tensors, 2)
        if (overlap := _overlap(first, second)) and not _is_legal(overlap, plan, readers)
    )
    unknown = tuple(t.name for t in tensors if not t.scratch and t.name not in known and t.born)
    findings = (
        *_scattered(plan),
        *_wrong_end(plan, shared_arena),
        *_wrong_weights(plan, shared_arena),
        *map(str, overlaps),
    )
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
        # Whatever wrote a tensor of unknown producer ran before its first reader.
        born = 0 if name in inputs else known.get(name, max(0, min(layers) - 1))
        dies = last if any(read.user == OUTPUT for read in reads) else max(layers)
        tensors.append(Tensor(name, place.start, place.end, born, dies, grain=_grain(reads[0])))
    return tuple(tensors)


def _cut_slices(
    tensors: tuple[Tensor, ...], plan: Plan, readers: Mapping[int, set[str]]
) -> tuple[Tensor, ...]:
    """A slice in place of the whole is listed up to the end of the whole: cut it to its own size."""
    contents = {read.tensor: _content_size(read) for read in plan.reads}
    cut = {tensor.name: tensor for tensor in tensors}
    for layer in plan.layers:
        read = [tensor for tensor in tensors if tensor.name in readers[layer.id] and not tensor.scratch]
        written = [tensor for tensor in tensors if tensor.born == layer.id and not tensor.scratch]
        if layer.op_type not in (CONCAT, SPLIT):
            continue
        wholes, parts = (written, read) if layer.op_type == CONCAT else (read, written)
        for whole, part in product(wholes, parts):
            if whole.holds(part) and whole.end == part.end:
                end = min(part.end, part.start + contents[part.name])
                cut[part.name] = replace(part, end=end)
    return tuple(cut.get(tensor.name, tensor) if not tensor.scratch else tensor for tensor in tensors)


def _content_size(read: TensorRead) -> int:
    """Bytes of the tensor itself, its channels filled up to whole atoms; C1 as printed is not trusted."""
    size = _BYTES.get(read.data_type)
    if size is None:
        return read.placement.size
    if read.data_format != _NATIVE or len(read.native_shape) != 5 or len(read.shape) != 4:
        return prod(read.shape) * size
    batch, _, rows, columns, atom = read.native_shape
    return batch * -(-read.shape[1] // max(atom, 1)) * rows * columns * atom * size


def _grain(read: TensorRead) -> int:
    """Bytes of a row of pixels; of one pixel where there is but one row; 1 of what has other layouts."""
    size = _BYTES.get(read.data_type)
    if size is None or read.data_format != _NATIVE or len(read.native_shape) != 5:
        return 1
    _, _, rows, columns, atom = read.native_shape
    return max(1, (columns if rows > 1 else 1) * atom * size)


def _reads(plan: Plan) -> Mapping[str, list[TensorRead]]:
    reads: dict[str, list[TensorRead]] = defaultdict(list)
    for read in plan.reads:
        reads[read.tensor].append(read)
    return reads


def _overlap(first: Tensor, second: Tensor) -> Overlap | None:
    born, dies = max(first.born, second.born), min(first.dies, second.dies)
    start, end = max(first.start, second.start), min(first.end, second.end)
    return Overlap(first, second, born, end - start) if born <= dies and start < end else None


def _is_legal(overlap: Overlap, plan: Plan, readers: Mapping[int, set[str]]) -> bool:
    """Whether the two are input and output of a layer that works in place, or a slice and its whole."""
    earlier, later = sorted((overlap.first, overlap.second), key=lambda tensor: tensor.born)
    if earlier.scratch or later.scratch or earlier.name not in readers[later.born]:
        return False
    return earlier.born < later.born and _meet_legally(earlier, later, plan)


def _meet_legally(source: Tensor, result: Tensor, plan: Plan) -> bool:
    """``result`` is written by a layer that reads ``source``."""
    layer = plan.layer(result.born)
    operator = layer.op_type if layer else ""
    if operator in IN_PLACE and source.dies == result.born and source.holds(result) and result.holds(source):
        return True
    if operator == CONCAT:
        return result.may_be_cut_into(source)
    return operator == SPLIT and source.may_be_cut_into(result)


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


def _wrong_end(plan: Plan, shared_arena: bool | None) -> list[str]:
    """An arena of its own begins at 0, where there may be a tensor that nothing reads: its end is the size.

    In an arena that it shares the internal memory begins where the weights end: its extent is the size.
    """
    if not plan.reads:
        return []
    end = max(read.placement.end for read in plan.reads)
    start = min(read.placement.start for read in plan.reads)
    total = plan.internal_total
    alone, behind = abs(end - total.bytes), abs(end - start - total.bytes)
    if {None: min(alone, behind), False: alone, True: behind}[shared_arena] <= total.rounding:
        return []
    return [
        f"the internal tensors reach from {start:#x} to {end:#x}, the log's internal size is {total.text}"
    ]


def _wrong_weights(plan: Plan, shared_arena: bool | None) -> list[str]:
    """Constants that lie over one another, behind the printed total, or under internal memory of their arena.

    Two layers may use one constant: it has a row for each, with one name and one place.
    """
    places = {(w.tensor, w.placement.start, w.placement.end) for w in plan.weights if w.placement.size}
    ordered = sorted(places, key=lambda place: (place[1], place[2], place[0]))
    found = [
        f"the weights {one!r} ({a:#x}-{b:#x}) and {other!r} ({c:#x}-{d:#x}) share memory"
        for (one, a, b), (other, c, d) in pairwise(ordered)
        if c < b
    ]
    start, end = min((a for _, a, _ in places), default=0), max((b for _, _, b in places), default=0)
    total = plan.weight_total
    if end - start > total.bytes + total.rounding:
        found.append(f"the weights reach from {start:#x} to {end:#x}, the log's weight size is {total.text}")
    internal = min((read.placement.start for read in plan.reads), default=0)
    lowest = 0 if shared_arena is None else -1  # 0 is where an arena of its own begins
    if shared_arena is not False and plan.reads and lowest < internal < end:
        found.append(
            f"the internal memory begins at {internal:#x}, within the weights, which end at {end:#x}"
        )
    return found
