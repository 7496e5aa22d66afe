"""Faults for sound memory plans: a tensor is moved onto another one that is certainly needed at that time.

Which pairs those are is told here from single rows of the log and nodes of the fused graph, not with the
live ranges of the checker: otherwise the checker would only be asked whether it agrees with itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import FusedGraph
from pytest_rknpu.toolchain.log_rows import TensorRead

#: Their results may lie in their inputs' places.
MAY_SHARE = {"Relu", "Reshape", "Transpose", "Concat", "Split"}


@dataclass(frozen=True)
class Seeded:
    """``plan`` has ``moved`` lying over ``kept``; ``reason`` says why both are needed at one time."""

    plan: Plan
    moved: str
    kept: str
    reason: str


def seeded_overlaps(plan: Plan, graph: FusedGraph, generator: random.Random) -> Iterator[Seeded]:
    """One fault for each pair of tensors that must not meet and that lie apart in ``plan``."""
    places = {read.tensor: read.placement for read in plan.reads if read.placement.size}
    for (moved, kept), reason in sorted(_needed_together(plan, graph).items()):
        if moved not in places or kept not in places:
            continue
        one, other = places[moved], places[kept]
        if one.start < other.end and other.start < one.end:
            continue
        start = generator.randrange(max(other.start - (one.end - one.start) + 1, 0), other.end)
        yield Seeded(_with_place(plan, moved, start), moved, kept, reason)


def _needed_together(plan: Plan, graph: FusedGraph) -> dict[tuple[str, str], str]:
    pairs: dict[tuple[str, str], str] = {}
    reads: dict[str, list[int]] = {}
    for read in plan.reads:
        reads.setdefault(read.tensor, []).append(read.id)
    for one in reads:
        for other in reads:
            if one == other or "_exSecondary" in one or "_compute_zone" in one:
                continue
            if set(reads[one]) & set(reads[other]):
                pairs[one, other] = "one layer reads both"
            elif any(min(reads[other]) < layer < max(reads[other]) for layer in reads[one]):
                pairs[one, other] = "one is read between two readings of the other"
    layers = {layer.name.partition(":")[2]: layer for layer in plan.layers}
    for node in graph.nodes:
        layer = layers.get(node.name)
        if layer is None or layer.op_type in MAY_SHARE or layer.op_type != node.op_type:
            continue
        for source in set(node.inputs) & set(reads):
            for result in set(node.outputs) & set(reads):
                if layer.id in reads[source]:
                    pairs.setdefault((source, result), "one layer reads the one and writes the other")
                    pairs.setdefault((result, source), "one layer reads the one and writes the other")
    return pairs


def _with_place(plan: Plan, tensor: str, start: int) -> Plan:
    def moved(read: TensorRead) -> TensorRead:
        if read.tensor != tensor:
            return read
        length = read.placement.end - read.placement.start
        return replace(read, placement=replace(read.placement, start=start, end=start + length))

    return replace(plan, reads=tuple(moved(read) for read in plan.reads))
