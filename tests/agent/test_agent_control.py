"""Repeat and threads: what they save, and where they say that something failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.agent import compiler
from pytest_rknpu.agent.binding import bind
from pytest_rknpu.agent.compiler import Services
from pytest_rknpu.agent.executor import execute
from pytest_rknpu.agent.library import open_library
from pytest_rknpu.agent.state import State
from pytest_rknpu.agent.store import ModelStore

Run = Callable[..., Any]


def test_a_value_saved_in_a_loop_is_a_list(bound: Run) -> None:
    values = bound(
        {
            "op": "repeat",
            "count": 3,
            "commands": [
                {"op": "run", "context": "c", "save": "codes"},
                {"op": "repeat", "count": 2, "commands": [{"op": "timestamp", "save": "times"}]},
            ],
        },
        {"op": "repeat", "count": 0, "commands": [{"op": "timestamp", "save": "never"}]},
        {"op": "repeat", "count": 4_000_000_000, "commands": []},
    )
    assert values["codes"] == [0, 0, 0]
    assert len(values["times"]) == 6
    assert values["times"] == sorted(values["times"])
    assert values["never"] == []


def test_a_failure_in_a_loop_tells_iteration_and_index(bound: Run) -> None:
    program = [
        {"op": "timestamp"},
        {
            "op": "repeat",
            "count": 9,
            "commands": [
                {"op": "timestamp", "save": "times"},
                {
                    "op": "repeat",
                    "count": 2,
                    "commands": [{"op": "write", "memory": "in", "cycle": ["fits", "not"]}],
                },
            ],
        },
    ]
    error = bound(*program, blobs={"fits": b"x", "not": bytes(257)}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [1, 0, 1, 1, 0])


def test_what_was_saved_before_a_failure_is_there(agent: Callable[..., Any], bound: Run) -> None:
    commands = [
        {"op": "timestamp", "save": "time"},
        {"op": "repeat", "count": 5, "commands": [
            {"op": "write", "memory": "in", "cycle": ["fits", "fits", "not"]},
            {"op": "read", "memory": "in", "length": 1, "save": "seen"},
        ]},
    ]  # fmt: skip
    reply = agent("execute", program={"commands": commands, "blobs": {"fits": b"x", "not": bytes(257)}})
    assert reply["error"]["at"] == [1, 2, 0]
    assert reply["values"]["seen"] == [b"x", b"x"]
    assert reply["values"]["time"] > 0


def test_a_malformed_command_in_a_loop_is_found_before_anything_runs(bound: Run) -> None:
    error = bound(
        {"op": "destroy", "context": "c"},
        {"op": "repeat", "count": 3, "commands": [{"op": "timestamp"}, {"op": "tea"}]},
        fails=True,
    )
    assert (error["kind"], error["at"]) == ("program", [1, 1])
    bound({"op": "run", "context": "c"})  # still there


def test_threads_run_side_by_side(bound: Run) -> None:
    # Each group waits in the barrier; the loops then overlap in time.
    groups = [
        [
            {"op": "timestamp", "save": f"begin {number}"},
            {"op": "repeat", "count": 300, "commands": [{"op": "fill", "memory": name, "byte": number}]},
            {"op": "timestamp", "save": f"end {number}"},
        ]
        for number, name in enumerate(["in", "out"])
    ]
    values = bound(
        {"op": "threads", "groups": groups},
        {"op": "read", "memory": "in", "save": "in"},
        {"op": "read", "memory": "out", "save": "out"},
    )
    assert values["in"] == bytes(256)
    assert values["out"] == b"\1" * 256
    assert set(values) == {"begin 0", "end 0", "begin 1", "end 1", "in", "out"}


def test_no_thread_begins_before_all_are_there(bound: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class SlowlyStarted(threading.Thread):
        def start(self) -> None:
            threading.Event().wait(0.02)  # time in which a thread that does not wait would run
            started.append(time.monotonic_ns())
            super().start()

    monkeypatch.setattr(threading, "Thread", SlowlyStarted)
    groups = [[{"op": "timestamp", "save": f"begin {number}"}] for number in range(4)]
    values = bound({"op": "threads", "groups": groups})
    assert len(started) == 4
    assert min(values.values()) > max(started)


def test_a_long_loop_looks_at_the_log_now_and_then(library: dict[str, Any], tmp_path: Path) -> None:
    looks: list[int] = []
    services = Services(ModelStore(str(tmp_path)), lambda *_: {}, lambda: looks.append(1))
    loop = {"op": "repeat", "count": 1000, "commands": [{"op": "timestamp"}]}
    assert execute({"commands": [loop]}, State(bind(open_library(library))), services)["ok"]
    assert len(looks) == 3


def test_a_failure_in_a_thread_tells_the_group(bound: Run) -> None:
    error = bound(
        {"op": "timestamp"},
        {
            "op": "threads",
            "groups": [
                [{"op": "timestamp", "save": "a"}],
                [{"op": "timestamp", "save": "b"}, {"op": "sync", "memory": "in", "mode": 77}],
            ],
        },
        fails=True,
    )
    assert (error["kind"], error["at"]) == ("rknn", [1, 1, 1])


def test_threads_must_not_save_under_one_name(bound: Run) -> None:
    group = [{"op": "timestamp", "save": "same"}]
    error = bound({"op": "threads", "groups": [group, group]}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [0, 1, 0])


def test_a_memory_destroyed_in_the_first_round_is_gone_in_the_second(bound: Run) -> None:
    error = bound(
        {"op": "repeat", "count": 2, "commands": [{"op": "destroy_mem", "memory": "out", "context": "c"}]},
        fails=True,
    )
    assert (error["kind"], error["at"]) == ("program", [0, 1, 0])


def test_a_loop_gives_up_when_its_time_is_over(agent: Callable[..., Any], bound: Run) -> None:
    endless = {"op": "repeat", "count": 4_000_000_000, "commands": [{"op": "run", "context": "c"}]}
    outer = {"op": "repeat", "count": 2, "commands": [{"op": "timestamp", "save": "times"}, endless]}
    reply = agent("execute", program={"commands": [outer]}, deadline_s=0.2)
    assert reply["error"]["kind"] == "deadline"
    assert reply["error"]["at"][:2] == [0, 0]
    assert "of 4000000000 iterations" in reply["error"]["message"]
    assert len(reply["values"]["times"]) == 1
    bound({"op": "run", "context": "c"})  # nothing is broken


@pytest.mark.parametrize("deadline_s", [0, -1, float("nan"), float("inf"), "soon"])
def test_a_deadline_is_a_number_of_seconds(agent: Callable[..., Any], deadline_s: object) -> None:
    reply = agent("execute", program={"commands": []}, deadline_s=deadline_s)
    assert reply["error"]["kind"] == "program"
    assert "key 'deadline_s'" in reply["error"]["message"]


def test_more_values_than_can_be_kept_are_refused_before_anything_runs(bound: Run) -> None:
    save = {"op": "timestamp", "save": "times"}
    inner = {"op": "repeat", "count": 1000, "commands": [save]}
    error = bound(
        {"op": "destroy", "context": "c"},
        {"op": "repeat", "count": 1001, "commands": [inner]},
        fails=True,
    )
    assert (error["kind"], error["at"]) == ("program", [1, 0, 0])
    assert "saves 1001000 values under 'times'" in error["message"]
    bound({"op": "run", "context": "c"})  # still there
    values = bound(inner, {"op": "timestamp", "save": "once"})
    assert len(values["times"]) == 1000


def test_more_bytes_than_the_link_takes_are_not_piled_up(bound: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MAXIMUM_SAVED_BYTES", 600)
    read = {"op": "read", "memory": "in", "save": "seen"}
    error = bound({"op": "repeat", "count": 9, "commands": [read]}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [0, 2, 0])
    assert "saves more than 600 bytes" in error["message"]
    assert len(bound({"op": "repeat", "count": 2, "commands": [read]})["seen"]) == 2
