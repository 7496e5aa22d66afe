"""The recorder writes plain data in the order of the calls."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from pytest_rknpu.errors import HarnessError
from pytest_rknpu.session.program import BIDIRECTIONAL, TO_DEVICE, Program


def test_commands_are_recorded_in_order_and_plain() -> None:
    program = Program()
    program.init("a", "f" * 64, flags=3)
    program.create_mem("m", "a", 64)
    program.write("m", b"x" * 64)
    with program.repeat(5):
        program.sync("m", TO_DEVICE, "a")
        program.run("a")
        program.compare_cycle("m", [b"1", b"2", b"1"], "seen")
    program.sync("m", BIDIRECTIONAL, None)
    plain = program.plain()
    assert [command["op"] for command in plain["commands"]] == [
        "init",
        "create_mem",
        "write",
        "repeat",
        "sync",
    ]
    loop = plain["commands"][3]
    assert loop["count"] == 5
    assert [command["op"] for command in loop["commands"]] == ["sync", "run", "compare"]
    assert loop["commands"][2]["cycle"][0] == loop["commands"][2]["cycle"][2]
    assert plain["commands"][4]["context"] is None
    json.dumps(plain["commands"])
    assert all(type(command.get("mode", 0)) is int for command in [*plain["commands"], *loop["commands"]])


def test_equal_bytes_travel_once() -> None:
    program = Program()
    for _ in range(3):
        program.write("m", b"same")
    assert list(program.plain()["blobs"].values()) == [b"same"]


def test_blocks_nest_and_do_not_leak_commands() -> None:
    program = Program()
    with program.threads() as threads:
        for name in "ab":
            with threads.group(), program.child(name, deadline_s=3):
                program.run(name)
    (command,) = program.plain()["commands"]
    assert command["op"] == "threads"
    assert [group[0]["op"] for group in command["groups"]] == ["child", "child"]
    assert [group[0]["commands"][0]["context"] for group in command["groups"]] == ["a", "b"]


def test_whole_numbers_and_bytes_of_other_types_become_plain() -> None:
    program = Program()
    program.create_mem("m", "c", np.int64(64))  # type: ignore[arg-type]
    program.write("m", bytearray(b"xy"), offset=np.uint8(3))  # type: ignore[arg-type]
    program.write_cycle("m", (memoryview(b"xy"), b"z"))  # type: ignore[arg-type]
    with program.repeat(np.int32(2)):  # type: ignore[arg-type]
        program.sync("m", TO_DEVICE, "c")
    plain = program.plain()
    assert [type(value) for value in plain["blobs"].values()] == [bytes, bytes]
    create, write, _, loop = plain["commands"]
    assert (create["size"], write["offset"], loop["count"]) == (64, 3, 2)
    assert {type(value) for value in (create["size"], write["offset"], loop["count"])} == {int}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (lambda program: program.write("m", "text"), "takes bytes, not str"),
        (lambda program: program.write("m", np.zeros(4)), r"not ndarray; take its .tobytes\(\)"),
        (lambda program: program.blob("b", 5), "blob 'b': takes bytes, not int"),
        (lambda program: program.set_inputs("c", [{"index": 0}]), "takes bytes, not NoneType"),
        (
            lambda program: program.timestamp(print),
            r"command 1 \(timestamp\), key 'save': a builtin_function",
        ),
        (lambda program: program.bind("c", "m", {"dims": [1, {2}]}), r"key 'attr'\['dims'\]\[1\]: a set"),
        (lambda program: program.bind("c", "m", {1: 2}), "the key 1 is no text"),
        (lambda program: nested(program, 5000), "nested more than 50 deep"),
    ],
)
def test_what_no_board_can_be_sent_is_named(record: Callable[[Program], None], words: str) -> None:
    program = Program()
    program.timestamp("before")
    with pytest.raises(HarnessError, match=words):
        send(program, record)


def send(program: Program, record: Callable[[Program], None]) -> None:
    """Record something and make it ready for the link."""
    record(program)
    program.plain()


def nested(program: Program, depth: int) -> None:
    """A list in a list in a list."""
    commands = program._levels[0]
    for _ in range(depth):
        inner: list[object] = []
        commands.append({"op": "repeat", "count": 1, "commands": inner})
        commands = inner  # type: ignore[assignment]


def test_a_mistake_deep_inside_is_named_by_its_place() -> None:
    program = Program()
    with program.repeat(2), program.child("c"):
        program.thrash(4096)
        program.thrash([4096, None, object()])  # type: ignore[arg-type]
    with pytest.raises(HarnessError, match=r"^command 0\.0\.1 \(thrash\), key 'size'\[2\]: a object"):
        program.plain()
