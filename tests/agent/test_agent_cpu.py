"""What the CPU's operations report, against slow and obvious definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent.cpu import LINE, SHOWN, describe_difference

Run = Callable[..., Any]


@given(
    expected=st.binary(min_size=1, max_size=400),
    changes=st.lists(st.tuples(st.integers(0, 399), st.integers(1, 255)), min_size=1, max_size=60),
    offset=st.integers(0, 300),
)
def test_a_difference_is_described_by_offset_and_line(
    expected: bytes, changes: list[tuple[int, int]], offset: int
) -> None:
    changed = bytearray(expected)
    for position, change in changes:
        changed[position % len(expected)] = expected[position % len(expected)] ^ change
    actual = bytes(changed)
    detail = describe_difference(expected, actual, offset, 5)

    differing = [offset + index for index in range(len(expected)) if expected[index] != actual[index]]
    lines = sorted({position // LINE for position in differing})
    inside = [index for index in range(len(expected)) if (offset + index) // LINE == lines[0]]
    assert detail == {
        "iteration": 5,
        "differing": len(differing),
        "offsets": differing[:SHOWN],
        "lines": lines[:SHOWN],
        "expected": bytes(expected[index] for index in inside),
        "actual": bytes(actual[index] for index in inside),
    }


def test_compare_counts_over_iterations_and_keeps_the_first_difference(bound: Run) -> None:
    values = bound(
        {"op": "fill", "memory": "in", "byte": 1},
        {
            "op": "repeat",
            "count": 6,
            "commands": [
                {
                    "op": "compare",
                    "memory": "in",
                    "offset": 64,
                    "cycle": ["same", "other", "same"],
                    "save": "v",
                }
            ],
        },
        blobs={"same": b"\1" * 100, "other": b"\1" * 70 + b"\2" + b"\1" * 29},
    )
    assert values["v"]["comparisons"] == 6
    assert values["v"]["mismatches"] == 2
    first = values["v"]["first"]
    assert (first["iteration"], first["offsets"], first["lines"], first["differing"]) == (1, [134], [2], 1)
    assert first["expected"] == b"\1" * 6 + b"\2" + b"\1" * 29


def test_write_and_fill_touch_what_they_should_and_nothing_else(bound: Run) -> None:
    values = bound(
        {"op": "fill", "memory": "in", "byte": 0xA5},
        {"op": "write", "memory": "in", "offset": 3, "data": "word"},
        {"op": "fill", "memory": "in", "offset": 250, "byte": 1},
        {"op": "fill", "memory": "in", "offset": 100, "length": 2, "byte": 2},
        {"op": "read", "memory": "in", "save": "all"},
        {"op": "read", "memory": "in", "offset": 255, "save": "last"},
        blobs={"word": b"word"},
    )
    expected = bytearray(b"\xa5" * 256)
    expected[3:7], expected[250:], expected[100:102] = b"word", b"\1" * 6, b"\2\2"
    assert values["all"] == bytes(expected)
    assert values["last"] == b"\1"


@pytest.mark.parametrize(
    "command",
    [
        {"op": "write", "memory": "in", "offset": 253, "data": "word"},
        {"op": "write", "memory": "in", "offset": 2**63, "data": "word"},
        {"op": "fill", "memory": "in", "offset": 0, "length": 257, "byte": 0},
        {"op": "fill", "memory": "in", "offset": 257, "byte": 0},
        {"op": "read", "memory": "in", "offset": 256, "length": 1, "save": "x"},
        {"op": "read", "memory": "in", "length": 2**64 - 1, "save": "x"},
        {"op": "digest", "memory": "in", "offset": 1, "length": 256, "save": "x"},
        {"op": "compare", "memory": "in", "offset": 254, "data": "word", "save": "x"},
    ],
)
def test_no_byte_outside_a_memory_is_touched(bound: Run, command: dict[str, Any]) -> None:
    error = bound({"op": "timestamp"}, command, blobs={"word": b"word"}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [1])
    assert "outside memory 'in' of 256 bytes" in error["message"]


def test_the_end_of_a_memory_is_inside(bound: Run) -> None:
    values = bound({"op": "read", "memory": "in", "offset": 256, "save": "nothing"})
    assert values == {"nothing": b""}


def test_write_takes_its_blobs_in_turn(bound: Run) -> None:
    values = bound(
        {
            "op": "repeat",
            "count": 5,
            "commands": [
                {"op": "write", "memory": "in", "cycle": ["a", "b"]},
                {"op": "read", "memory": "in", "length": 1, "save": "seen"},
            ],
        },
        blobs={"a": b"a", "b": b"b"},
    )
    assert values["seen"] == [b"a", b"b", b"a", b"b", b"a"]


def test_time_goes_on_and_resources_are_counted(bound: Run) -> None:
    values = bound(
        {"op": "timestamp", "save": "first"},
        {"op": "thrash", "size": 4096},
        {"op": "timestamp", "save": "second"},
        {"op": "resources", "save": "before"},
        {"op": "create_mem", "memory": "more", "context": "c", "size": 2**20},
        {"op": "resources", "save": "held"},
        {"op": "destroy_mem", "memory": "more", "context": "c"},
        {"op": "resources", "save": "after"},
    )
    assert values["second"] > values["first"]
    assert values["held"]["descriptors"] == values["before"]["descriptors"] + 1
    assert values["after"] == values["before"]
    assert values["held"]["mappings"] > 0


def test_compare_leaves_out_what_the_mask_leaves_out(bound: Run) -> None:
    memory = {"op": "write", "memory": "in", "data": "actual"}
    commands = [
        memory,
        {"op": "compare", "memory": "in", "data": "expected", "mask": "all but byte 1", "save": "masked"},
        {"op": "compare", "memory": "in", "data": "expected", "mask": "all but byte 2", "save": "other"},
    ]
    blobs = {
        "actual": b"\x01\x02\x03",
        "expected": b"\x01\xff\x03",
        "all but byte 1": b"\xff\x00\xff",
        "all but byte 2": b"\xff\xff\x00",
    }
    values = bound(*commands, blobs=blobs)
    assert values["masked"]["mismatches"] == 0
    assert values["other"]["first"]["offsets"] == [1]
    assert values["other"]["first"]["actual"] == b"\x01\x02\x00"


def test_a_mask_of_another_length_is_refused_before_anything_runs(bound: Run) -> None:
    commands = [{"op": "compare", "memory": "in", "data": "word", "mask": "short", "save": "x"}]
    error = bound(*commands, blobs={"word": b"1234", "short": b"1"}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [0])
    assert "the mask has 1 bytes, the data 4" in error["message"]
