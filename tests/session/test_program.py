"""The recorder writes plain data in the order of the calls."""

from __future__ import annotations

import json

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
