"""Commands in a child process: what it may do, and that its death, hanging and last words are results."""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.agent import sources as agent_sources
from pytest_rknpu.agent.children import child_request, pack_reply, run_child, signal_name, unpack_reply

Run = Callable[..., Any]
MODEL = hashlib.sha256(b"FAKE model for the fake runtime").hexdigest()
INIT = {"op": "init", "context": "c", "model": MODEL}


def call(function: str, *arguments: Any, **keys: Any) -> dict[str, Any]:
    return {"op": "call", "function": function, "arguments": list(arguments), **keys}


def child(*commands: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"op": "child", "commands": list(commands), "save": "child", **keys}


def test_a_child_has_its_own_handle_and_no_contexts(bound: Run) -> None:
    values = bound(
        child(
            INIT,
            {"op": "create_mem", "memory": "in", "context": "c", "size": 256},
            {"op": "write", "memory": "in", "data": "word"},
            {"op": "read", "memory": "in", "length": 4, "save": "bytes"},
        ),
        blobs={"word": b"word"},
    )
    answer = values["child"]
    assert answer["outcome"] == "done"
    assert answer["reply"]["values"] == {"bytes": b"word"}
    assert (answer["signal"], answer["exit"], answer["log"]) == (None, 0, "")


def create(memory: str, size: int) -> dict[str, Any]:
    return {"op": "create_mem", "memory": memory, "context": "c", "size": size}


def importing(memory: str, source: str, size: int, **keys: Any) -> dict[str, Any]:
    return {"op": "import_fd", "memory": memory, "context": "c", "source": source, "size": size, **keys}


def test_a_child_inherits_memories_by_descriptor(bound: Run) -> None:
    """What either process writes, the other finds; the child's end takes nothing from the parent."""
    values = bound(
        create("pool", 8192),
        importing("part", "pool", 4096, offset=4096),
        {"op": "write", "memory": "pool", "data": "word"},
        {"op": "write", "memory": "part", "offset": 8, "data": "word"},
        child(
            INIT,
            importing("whole", "pool", 8192),
            importing("end", "part", 4000, offset=4096),
            {"op": "read", "memory": "whole", "length": 4, "save": "whole"},
            {"op": "read", "memory": "end", "offset": 8, "length": 4, "save": "end"},
            {"op": "write", "memory": "whole", "offset": 100, "data": "back"},
            inherits=["pool", "part"],
        ),
        {"op": "read", "memory": "pool", "offset": 100, "length": 4, "save": "back"},
        blobs={"word": b"word", "back": b"back"},
    )
    assert values["child"]["reply"]["values"] == {"whole": b"word", "end": b"word"}
    assert values["back"] == b"back"


def test_an_inherited_memory_can_only_be_imported(bound: Run) -> None:
    for command in ({"op": "read", "memory": "pool", "save": "x"}, create("pool", 4096)):
        error = bound(create("pool", 4096), child(INIT, command, inherits=["pool"]), fails=True)
        assert error["kind"] == "program"
        assert "'pool'" in error["message"]
    error = bound(child(INIT, inherits=["nothing"]), fails=True)
    assert "'nothing' is not known here" in error["message"]


def test_a_memory_that_a_second_process_cannot_map_is_told(library: dict[str, Any], tmp_path: Path) -> None:
    """A descriptor that is open for reading only, as an exporter may make them, or none at all."""
    (tmp_path / "read-only").write_bytes(bytes(4096))
    descriptor = os.open(tmp_path / "read-only", os.O_RDONLY)
    try:
        for fd in (descriptor, -1):
            request = child_request(library, str(tmp_path), "/", [], {}, {"pool": (fd, 4096)})
            answer = run_child(request, agent_sources(), 20)
            assert answer["outcome"] == "error"
            assert answer["reply"]["error"]["kind"] == "mapping"
            assert f"4096 bytes of memory 'pool' (descriptor {fd})" in answer["reply"]["error"]["message"]
    finally:
        os.close(descriptor)


def test_a_crash_is_a_result_with_its_last_words(bound: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it would take the buffer from C's stdout too
    answer = bound(child({"op": "timestamp", "save": "time"}, call("rknn_test_crash")))["child"]
    assert (answer["outcome"], answer["signal"], answer["exit"]) == ("died", "SIGSEGV", None)
    assert answer["reply"] is None
    # Written without a newline and never flushed: a buffered stdout would have lost it.
    assert "E RKNN: last words before the crash" in answer["log"]
    assert "raw_call.py" in answer["log"]  # Python's own account of where it was


def test_an_exit_is_a_result(bound: Run) -> None:
    answer = bound(child(call("rknn_test_exit", 7)))["child"]
    assert (answer["outcome"], answer["signal"], answer["exit"]) == ("died", None, 7)
    answer = bound(child(call("rknn_test_exit", 0)))["child"]
    assert (answer["outcome"], answer["exit"], answer["reply"]) == ("died", 0, None)


@pytest.mark.parametrize("function", ["rknn_test_hang", "rknn_test_close_and_hang"])
def test_a_child_that_hangs_is_ended_at_its_deadline(bound: Run, function: str) -> None:
    values = bound(
        {"op": "timestamp", "save": "begin"},
        child(call(function), deadline_s=0.7),
        {"op": "timestamp", "save": "end"},
    )
    assert values["child"]["outcome"] == "timeout"
    assert values["child"]["reply"] is None
    assert "cannot be killed" not in values["child"]["log"]
    assert 0.6 < (values["end"] - values["begin"]) / 1e9 < 5


def test_an_unexpected_code_is_an_error_of_the_child_only(bound: Run) -> None:
    answer = bound(child(INIT, {"op": "run", "context": "c"}))["child"]
    assert answer["outcome"] == "error"
    assert answer["reply"]["error"]["code_name"] == "RKNN_ERR_FAIL"
    assert answer["reply"]["error"]["at"] == [1]


def test_processes_that_a_child_starts_end_with_it(bound: Run) -> None:
    answer = bound(child(call("rknn_test_grandchild", save="pid")))["child"]
    assert answer["outcome"] == "done"
    assert _ends_within(answer["reply"]["values"]["pid"], seconds=5)


def _ends_within(pid: int, seconds: float) -> bool:
    """Whether a process has ended or ends in time, reaped or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def test_use_after_destroy_can_be_tried(bound: Run) -> None:
    answer = bound(
        child(
            INIT,
            {"op": "create_mem", "memory": "m", "context": "c", "size": 16},
            {"op": "destroy", "context": "c"},
            call("rknn_run", {"context": "c"}, {"null": True}, save="run"),
            call("rknn_mem_sync", {"context": "c"}, {"memory": "m"}, 1, save="sync"),
            call("rknn_mem_sync", 0, {"null": True}, 1, save="null"),
        )
    )["child"]
    assert answer["reply"]["values"] == {"run": -7, "sync": 0, "null": -5}


def test_a_call_can_make_a_context_by_its_pointer(bound: Run) -> None:
    size = len(b"FAKE model")
    answer = bound(
        child(
            call(
                "rknn_init", {"context_pointer": "n"}, {"blob": "model"}, size, 0, {"null": True}, save="init"
            ),
            call("rknn_init", {"context_pointer": "x"}, {"blob": "noise"}, 5, 0, {"null": True}, save="bad"),
            call("rknn_init", {"null": True}, {"blob": "noise"}, 5, 0, {"null": True}, save="nowhere"),
            {"op": "query", "context": "n", "query": 0, "save": "counts"},
            call("rknn_destroy", {"context": "n"}, expect="success"),
        ),
        blobs={"model": b"FAKE model", "noise": b"noise"},
    )["child"]
    values = answer["reply"]["values"]
    assert (values["init"], values["bad"], values["nowhere"]) == (0, -6, -7)
    assert values["counts"]["n_input"] == 1
    assert "E RKNN: [00:00:00.000] 6, 1" in answer["log"]


def test_calls_in_threads_really_overlap(bound: Run) -> None:
    meet = [[call("rknn_test_meet", save=f"met {number}", expect="success")] for number in range(2)]
    answer = bound(child({"op": "threads", "groups": meet}))["child"]
    assert answer["reply"]["values"] == {"met 0": 0, "met 1": 0}


def test_a_flood_of_log_lines_is_bounded_and_keeps_its_error(bound: Run) -> None:
    answer = bound(child(call("rknn_test_log", 100_000)))["child"]
    assert answer["outcome"] == "done"
    assert len(answer["log"]) < 300_000
    assert "I RKNN: line 0 of" in answer["log"]
    assert "I RKNN: line 99999 of" in answer["log"]
    assert "E RKNN: in the middle of the flood" in answer["log"]
    assert "bytes of log are left out here" in answer["log"]


@pytest.mark.parametrize(
    ("commands", "at"),
    [
        ([{"op": "run", "context": "c"}], [0, 0]),  # a child does not know the session's contexts
        ([{"op": "timestamp"}, {"op": "child", "commands": []}], [0, 1]),
        ([call("printf", 1)], [0, 0]),
        ([call("rknn_run", 1)], [0, 0]),
        ([call("rknn_run", 1, {"null": False})], [0, 0]),
        ([call("rknn_run", {"context": "nobody"}, 0)], [0, 0]),
        ([call("rknn_run", {"blob": "nothing"}, 0)], [0, 0]),
        ([call("rknn_run", {"null": True, "context": "c"}, 0)], [0, 0]),
        ([call("rknn_run", 2**64, 0)], [0, 0]),
    ],
)
def test_a_malformed_list_for_a_child_is_refused_before_it_starts(
    bound: Run, commands: list[dict[str, Any]], at: list[int]
) -> None:
    error = bound(child(*commands), fails=True)
    assert (error["kind"], error["at"]) == ("program", at)


def test_risky_calls_are_for_children_only(bound: Run) -> None:
    error = bound(call("rknn_run", 0, 0), fails=True)
    assert error["kind"] == "program"
    assert "child only" in error["message"]


def test_a_function_that_is_not_there_is_named(bound: Run) -> None:
    error = bound(child(call("rknn_matmul_run", 0)), fails=True)
    assert (error["kind"], error["call"]) == ("missing-function", "rknn_matmul_run")


def test_half_an_answer_is_none() -> None:
    packed = pack_reply({"ok": True, "values": {"x": b"bytes"}})
    assert unpack_reply(packed) == {"ok": True, "values": {"x": b"bytes"}}
    assert all(unpack_reply(packed[:length]) is None for length in range(len(packed)))


def test_signals_have_names() -> None:
    assert signal_name(signal.SIGABRT) == "SIGABRT"
    assert signal_name(63) == "signal 63"


def test_a_live_context_comes_before_a_destroyed_one_of_its_name(bound: Run) -> None:
    # The other context takes the place that the first one had, and leaves it dead.
    other = {**INIT, "context": "other"}
    answer = bound(
        child(
            INIT,
            {"op": "destroy", "context": "c"},
            other,
            INIT,
            {"op": "destroy", "context": "other"},
            call("rknn_query", {"context": "c"}, 0, {"blob": "room"}, 8, save="live"),
            call("rknn_query", {"context": "other"}, 0, {"blob": "room"}, 8, save="dead"),
        ),
        blobs={"room": bytes(8)},
    )["child"]
    assert answer["reply"]["values"] == {"live": 0, "dead": -7}


def test_a_child_dies_with_its_agent(library: dict[str, Any]) -> None:
    # The agent is a process of its own here, killed while its child hangs.
    script = f"""
import json, sys
from pytest_rknpu.agent import sources
from pytest_rknpu.agent.children import child_request, run_child
hang = [{{"op": "call", "function": "rknn_test_announce_and_hang", "arguments": [{{"blob": "path"}}]}}]
request = child_request({library!r}, "models", "/", hang, {{"path": sys.argv[1].encode()}})
run_child(request, sources(), 60)
"""
    reading, writing = os.pipe()
    with subprocess.Popen([sys.executable, "-c", script, f"/proc/{os.getpid()}/fd/{writing}"]) as agent:
        try:
            pid = int(os.read(reading, 32))
        finally:
            agent.kill()
            os.close(reading)
            os.close(writing)
    assert _ends_within(pid, seconds=5)
