"""MEM-12's checker: no alarm on a real plan, nearly every seeded overlap seen; both are counted."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from build_logs import NAMES, stored
from seeding import seeded_overlaps

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import FusedGraph, Node, producers, read_fused_graph
from pytest_rknpu.toolchain.log_rows import Cycles, Layer, MemoryTotal, Placement, TensorRead, Weight
from pytest_rknpu.toolchain.memory_plan import PlanCheck, check_plan

#: Missed are only moves onto the unused tail of a tensor that is a slice of a Concat.
SEEN_AT_LEAST = 0.99


def real_plans() -> Iterator[tuple[str, Plan, FusedGraph]]:
    for name in NAMES:
        for number, plan in enumerate(stored(name).log.plans):
            yield f"{name} shape {number}", plan, stored(name).graph


@pytest.mark.parametrize("name", NAMES)
def test_no_alarm_on_a_real_plan(name: str) -> None:
    for plan in stored(name).log.plans:
        check = check_plan(plan, stored(name).graph)
        assert check.findings == ()
        assert check.unknown == ()
        assert {tensor.name for tensor in check.tensors} == {read.tensor for read in plan.reads}


def test_seeded_overlaps_are_seen(record_property: pytest.RecordProperty) -> None:
    generator, seeded, seen = random.Random(5), Counter[str](), Counter[str]()
    for _, plan, graph in real_plans():
        for fault in seeded_overlaps(plan, graph, generator):
            seeded[fault.reason] += 1
            seen[fault.reason] += _is_seen(check_plan(fault.plan, graph), fault.moved, fault.kept)
    record_property("seeded", dict(seeded))
    record_property("seen", dict(seen))
    print(f"seeded {dict(seeded)}, seen {dict(seen)}")
    assert len(seeded) == 3
    assert seeded.total() > 1000
    assert all(seen[reason] >= SEEN_AT_LEAST * count for reason, count in seeded.items())


def test_without_the_graph_fewer_are_seen() -> None:
    """Why the fused graph is kept: without producers a tensor seems to live from its first reader on."""
    with_graph = without = total = alarms = 0
    for _, plan, graph in real_plans():
        alarms += len(check_plan(plan, None).findings)
        for fault in seeded_overlaps(plan, graph, random.Random(6)):
            if "writes" in fault.reason:
                total += 1
                with_graph += _is_seen(check_plan(fault.plan, graph), fault.moved, fault.kept)
                without += _is_seen(check_plan(fault.plan, None), fault.moved, fault.kept)
    assert alarms == 0
    assert with_graph > 0.98 * total > without


def _is_seen(check: PlanCheck, one: str, other: str) -> bool:
    return any({overlap.first.name, overlap.second.name} == {one, other} for overlap in check.overlaps)


def layer(number: int, operator: str, name: str) -> Layer:
    cycles = Cycles(0, 0, 0)
    return Layer(
        number, operator, "INT8", "NPU", (), False, (), False, cycles, None, 0.0, f"{operator}:{name}"
    )


def read(number: int, user: str, tensor: str, start: int, end: int, channels: int = 16) -> TensorRead:
    shape, native = (1, channels, 4, 4), (1, (channels + 15) // 16, 4, 4, 16)
    place = Placement(start, end, end - start, False)
    return TensorRead(number, user, tensor, "INT8", "NC1HWC2", shape, native, place)


def plan_of(reads: list[TensorRead], layers: list[Layer]) -> Plan:
    total = max(r.placement.end for r in reads)
    size = MemoryTotal(f"{total}B", total, 0)
    return Plan(tuple(layers), tuple(reads), (), size, MemoryTotal("0KB", 0, 0))


#: input -> first -> second, which is added to first: first lives until the Add.
LAYERS = [
    layer(0, "InputOperator", "input"),
    layer(1, "Conv", "first"),
    layer(2, "Conv", "second"),
    layer(3, "Add", "sum"),
    layer(4, "OutputOperator", "sum"),
]
GRAPH = FusedGraph(
    ("input",),
    ("sum",),
    (
        Node("first", "Conv", ("input",), ("first",)),
        Node("second", "Conv", ("first",), ("second",)),
        Node("sum", "Add", ("first", "second"), ("sum",)),
    ),
)


def residual(second: int = 512, result: int = 0) -> Plan:
    return plan_of(
        [
            read(1, "Conv", "input", 0, 256),
            read(2, "Conv", "first", 256, 512),
            read(3, "Add", "first", 256, 512),
            read(3, "Add", "second", second, second + 256),
            read(4, "OutputOperator", "sum", result, result + 256),
            read(4, "OutputOperator", "pad", 768, 1024),
        ],
        LAYERS,
    )


def test_a_sound_plan_made_by_hand() -> None:
    check = check_plan(residual(), GRAPH)
    assert check.findings == ()
    # "pad" is no tensor of the graph: it is judged from its reader on, and said to be.
    assert check.unknown == ("pad",)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            residual(second=320),
            r"'first' \(layers 1-3, 0x100-0x200\) and 'second' .* share 192 bytes in layer 2",
        ),
        (residual(result=256), r"'first' .* and 'sum' .* share 256 bytes in layer 3"),
        (residual(result=500), r"'second' .* and 'sum' .*share 244 bytes in layer 3"),
    ],
)
def test_an_overlap_is_named(plan: Plan, words: str) -> None:
    check = check_plan(plan, GRAPH)
    assert any(re.search(words, finding) for finding in check.findings), check.findings


def test_only_operators_that_work_in_place_may() -> None:
    """Relu over its own input is sound; not where the input is read again, nor for a convolution."""
    layers = [*LAYERS[:2], layer(2, "Relu", "relu"), layer(3, "OutputOperator", "relu")]
    nodes = (Node("first", "Conv", ("input",), ("first",)), Node("relu", "Relu", ("first",), ("relu",)))
    graph = FusedGraph(("input",), ("relu",), nodes)
    reads = [
        read(1, "Conv", "input", 0, 256),
        read(2, "Relu", "first", 256, 512),
        read(3, "OutputOperator", "relu", 256, 512),
    ]
    assert check_plan(plan_of(reads, layers), graph).findings == ()
    again = [*reads, read(3, "OutputOperator", "first", 256, 512)]
    assert len(check_plan(plan_of(again, layers), graph).overlaps) == 1
    shifted = [*reads[:2], read(3, "OutputOperator", "relu", 320, 576)]
    assert len(check_plan(plan_of(shifted, layers), graph).overlaps) == 1
    convolution = [*layers[:2], layer(2, "Conv", "relu"), layers[3]]
    assert len(check_plan(plan_of(reads, convolution), graph).overlaps) == 1


def test_slices_of_a_concat() -> None:
    """Listed up to the end of the whole, as the compiler does for RK3576; and a slice over its neighbour."""
    layers = [
        *LAYERS[:3],
        layer(3, "Concat", "both"),
        layer(4, "OutputOperator", "both"),
    ]
    nodes = (
        Node("first", "Conv", ("input",), ("first",)),
        Node("second", "Conv", ("input",), ("second",)),
        Node("both", "Concat", ("first", "second"), ("both",)),
    )
    graph = FusedGraph(("input",), ("both",), nodes)

    def plan(second: int) -> Plan:
        reads = [
            read(1, "Conv", "input", 0, 256),
            read(2, "Conv", "input", 0, 256),
            read(3, "Concat", "first", 256, 768),
            read(3, "Concat", "second", second, 768),
            read(4, "OutputOperator", "both", 256, 768, channels=32),
        ]
        return plan_of(reads, layers)

    assert check_plan(plan(512), graph).findings == ()
    assert len(check_plan(plan(448), graph).overlaps) == 1


def test_scratch_memory_lives_in_its_layer_only() -> None:
    plan = residual()
    inside = read(3, "Add", "second_exSecondary", 512, 600)
    assert len(check_plan(replace(plan, reads=(*plan.reads, inside)), GRAPH).overlaps) == 1
    beside = read(2, "Conv", "first_exSecondary", 768, 1000)
    assert check_plan(replace(plan, reads=(*plan.reads, beside)), GRAPH).findings == ()


def test_two_places_and_a_wrong_end_are_named() -> None:
    plan = residual()
    moved = replace(plan, reads=(*plan.reads, read(4, "OutputOperator", "first", 600, 700)))
    assert any("'first' is read from several places" in f for f in check_plan(moved, GRAPH).findings)
    for size in (1023, 1025, 0):
        wrong = replace(plan, internal_total=MemoryTotal("x", size, 0))
        assert any("internal size is x" in finding for finding in check_plan(wrong, GRAPH).findings)
    rounded = replace(plan, internal_total=MemoryTotal("x", 1020, 4))
    assert check_plan(rounded, GRAPH).findings == ()


def test_what_was_taken_in_belongs_to_the_layer_that_took_it() -> None:
    nodes = (
        Node("conv", "Conv", ("input",), ("c",)),
        Node("relu", "Relu", ("c",), ("r",)),
        Node("pool", "Pool", ("r",), ("p",)),
    )
    layers = [
        layer(0, "InputOperator", "input"),
        layer(1, "ConvRelu", "conv"),
        layer(2, "Conv", "pool_2conv0"),
    ]
    plan = plan_of([read(1, "ConvRelu", "input", 0, 256), read(2, "Conv", "r", 256, 512)], layers)
    found = producers(plan, FusedGraph(("input",), ("p",), nodes))
    assert (found["input"], found["c"], found["r"], found["p"]) == (0, 1, 1, 2)


def test_a_graph_that_is_no_onnx() -> None:
    with pytest.raises(ToolkitError, match="no ONNX file"):
        read_fused_graph(b"\xff\xff\xff")


def weight(tensor: str, start: int, end: int, number: int = 1) -> Weight:
    return Weight(number, "Conv", tensor, "INT8", (16, 16), Placement(start, end, end - start, False))


def with_weights(*weights: Weight, total: int = 768) -> Plan:
    return replace(residual(), weights=weights, weight_total=MemoryTotal(f"{total}B", total, 0))


@pytest.mark.parametrize(
    ("weights", "finding"),
    [
        ([weight("a", 0, 256), weight("b", 256, 512)], None),
        ([weight("a", 0, 256), weight("a", 0, 256, 2)], None),  # two layers use one constant
        ([weight("a", 0, 256), weight("b", 128, 512)], "'a' (0x0-0x100) and 'b' (0x80-0x200) share memory"),
        ([weight("a", 0, 256), weight("b", 0, 256)], "the weights 'a' (0x0-0x100) and 'b' (0x0-0x100) share"),
        ([weight("a", 0, 256), weight("a", 64, 320, 2)], "'a' (0x0-0x100) and 'a' (0x40-0x140) share"),
        (
            [weight("a", 0, 256), weight("b", 512, 1024)],
            "reach from 0x0 to 0x400, the log's weight size is 768B",
        ),
    ],
)
def test_weights_are_needed_all_the_time(weights: list[Weight], finding: str | None) -> None:
    findings = check_plan(with_weights(*weights), GRAPH).findings
    if finding is None:
        assert findings == ()
    else:
        assert any(finding in found for found in findings)


def test_internal_memory_begins_behind_the_weights_of_its_arena() -> None:
    """As on RV1103 and RV1106; elsewhere the internal memory is an arena of its own, and begins at 0."""
    log = stored("probe_wide-int8-rv1106-2.5.0").log.plan
    end = max(weight.placement.end for weight in log.weights)

    def moved(row: TensorRead) -> TensorRead:
        place = row.placement
        shifted = replace(place, start=place.start - end, end=place.end - end)
        return replace(row, placement=shifted)

    below = replace(log, reads=tuple(moved(row) for row in log.reads))
    graph = stored("probe_wide-int8-rv1106-2.5.0").graph
    for shared in (True, None) if min(row.placement.start for row in below.reads) else (True,):
        found = check_plan(below, graph, shared_arena=shared).findings
        assert any("within the weights, which end at" in finding for finding in found)


def shifted(plan: Plan, by: int) -> Plan:
    """The internal tensors ``by`` bytes further up."""
    rows = [
        replace(
            row, placement=replace(row.placement, start=row.placement.start + by, end=row.placement.end + by)
        )
        for row in plan.reads
    ]
    return replace(plan, reads=tuple(rows))


def has_shared_arena(name: str) -> bool:
    return "rv1103" in name or "rv1106" in name


@pytest.mark.parametrize("name", NAMES)
def test_an_arena_in_another_place_is_told(name: str) -> None:
    """A plan whose tensors all lie a GiB too high passed, since only their extent was compared."""
    shared, graph = has_shared_arena(name), stored(name).graph
    for plan in stored(name).log.plans:
        assert check_plan(plan, graph, shared_arena=shared).findings == ()
        if not shared:
            weights = max((weight.placement.end for weight in plan.weights), default=4096)
            for by in (weights, 2**30):
                (finding,) = check_plan(shifted(plan, by), graph, shared_arena=False).findings
                assert "the log's internal size is" in finding


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_that_nothing_reads_may_be_what_lies_lowest(name: str) -> None:
    """It has no row: the others then seem to begin within the weights, which are elsewhere."""
    if has_shared_arena(name):
        return
    graph = stored(name).graph
    for plan in stored(name).log.plans:
        others = tuple(row for row in plan.reads if row.placement.start)
        check = check_plan(replace(plan, reads=others), graph, shared_arena=False)
        assert not [finding for finding in check.findings if "within the weights" in finding]


GROUPED = "grouped-int8-rk3576-2.5.0"


def test_the_parts_of_a_convolution_of_few_groups_have_writers() -> None:
    """Split, a convolution for each group and Concat bear names that no node of the graph has."""
    plan = stored(GROUPED).log.plan
    known = producers(plan, stored(GROUPED).graph)
    writers = {
        name: plan.layer(known[name]) for name in known if name.startswith("/four/Conv_output_0_branch")
    }
    assert [layer.name for layer in writers.values() if layer] == [
        f"Conv:/four/Conv_group_{number}" for number in range(4)
    ]
    split = plan.layer(known["/Relu_output_0_branch3"])
    assert split is not None
    assert split.op_type == "Split"


def test_what_nobody_is_known_to_write_lives_before_its_first_reader() -> None:
    """Without that the slices of this Concat, which lie in it, would seem to be written by it."""
    check = check_plan(stored(GROUPED).log.plan, None)
    assert check.findings == ()
    assert "/four/Conv_output_0_branch0" in check.unknown


def test_a_slice_lies_at_a_row_of_its_whole() -> None:
    plan, graph = stored(GROUPED).log.plan, stored(GROUPED).graph
    name = "/four/Conv_output_0_branch1"
    place = next(row.placement for row in plan.reads if row.tensor == name)
    for shift, sound in ((0, True), (1, False), (16, False)):
        start = place.start + shift
        moved = replace(place, start=start, size=place.end - start)
        reads = tuple(replace(row, placement=moved) if row.tensor == name else row for row in plan.reads)
        assert (check_plan(replace(plan, reads=reads), graph).findings == ()) is sound, shift
