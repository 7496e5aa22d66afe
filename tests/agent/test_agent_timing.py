"""Timed runs and syncs: what is measured, in which order, and what a failing run leaves."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_rknpu.agent import load
from pytest_rknpu.agent.failures import LibraryFailure
from pytest_rknpu.agent.load import loaded
from pytest_rknpu.agent.timing import no_garbage_collection

Run = Callable[..., Any]
MODEL = hashlib.sha256(b"FAKE model for the fake runtime").hexdigest()
INIT = {"op": "init", "context": "c", "model": MODEL}


def timed(*contexts: str, **keys: Any) -> dict[str, Any]:
    return {"op": "time_runs", "contexts": list(contexts) or ["c"], "save": "timed", **keys}


def test_runs_are_timed_one_by_one(bound: Run) -> None:
    begin = time.monotonic_ns()
    found = bound(timed(count=200, warm_up=5))["timed"]
    took = time.monotonic_ns() - begin
    assert len(found["wall_ns"]) == 200
    assert all(type(sample) is int and sample > 0 for sample in found["wall_ns"])
    assert sum(found["wall_ns"]) <= found["ended_ns"] - found["started_ns"] <= took
    assert found["perf_run_us"] is None


def test_perf_run_is_asked_after_each_run(bound: Run) -> None:
    found = bound(timed(count=7, perf_run=True))["timed"]
    assert found["perf_run_us"] == [1234] * 7  # the fake runtime's answer
    assert len(found["wall_ns"]) == 7


def test_a_refused_perf_run_is_told_by_its_code(bound: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run was timed all the same."""
    refused = SimpleNamespace(RKNN_QUERY_PERF_RUN=99)
    monkeypatch.setattr("pytest_rknpu.agent.timing.QueryCommand", refused)
    found = bound(timed(count=3, perf_run=True))["timed"]
    assert found["perf_run_us"] == [-5] * 3
    assert len(found["wall_ns"]) == 3


def test_the_host_says_which_context_runs_when(bound: Run) -> None:
    """Each context has an output of its own: the last of the order has run there, and nothing else has."""
    bound(
        {"op": "init", "context": "d", "model": MODEL},
        {"op": "query", "context": "d", "query": 2, "save": "attr"},
        {"op": "create_mem", "memory": "d out", "context": "d", "size": 256},
        {"op": "create_mem", "memory": "d in", "context": "d", "size": 256},
    )
    output = {"n_dims": 1, "dims": [256], "size_with_stride": 256, "name": "output"}
    bound(
        {"op": "bind", "context": "d", "memory": "d in", "attr": {**output, "name": "input"}},
        {"op": "bind", "context": "d", "memory": "d out", "attr": output},
    )
    values = bound(
        {"op": "fill", "memory": "out", "byte": 0},
        {"op": "fill", "memory": "d out", "byte": 0},
        timed("c", "d", order="order"),
        {"op": "read", "memory": "out", "length": 1, "save": "c"},
        {"op": "read", "memory": "d out", "length": 1, "save": "d"},
        blobs={"order": b"\1\1\1"},
    )
    assert (values["c"], values["d"]) == (b"\0", b"\1")
    assert len(values["timed"]["wall_ns"]) == 3


def test_steps_before_each_run_are_not_timed(bound: Run) -> None:
    values = bound(
        timed(
            count=6,
            before=[
                {"op": "write", "memory": "in", "cycle": ["a", "b"]},
                {"op": "thrash", "size": 2**22},
                {"op": "read", "memory": "in", "length": 1, "save": "inputs"},
            ],
        ),
        blobs={"a": b"a" * 256, "b": b"b" * 256},
    )
    assert values["inputs"] == [b"a", b"b"] * 3
    found = values["timed"]
    assert sum(found["wall_ns"]) * 2 < found["ended_ns"] - found["started_ns"]  # the thrashing took the rest


def test_a_failing_run_says_which(bound: Run) -> None:
    error = bound(INIT | {"context": "bare"}, timed("bare", count=3), fails=True)
    assert (error["kind"], error["call"], error["code"], error["at"]) == ("rknn", "rknn_run", -1, [1, 0])
    broken = {"op": "read", "memory": "in", "offset": 300}
    error = bound(timed(count=3, before=[{"op": "timestamp"}, broken]), fails=True)
    assert (error["kind"], error["at"]) == ("program", [0, 0, 1])


def test_syncs_are_timed_in_several_modes(bound: Run) -> None:
    command = {"op": "time_syncs", "memory": "in", "context": None, "modes": [1, 2, 3], "save": "timed"}
    found = bound({**command, "order": "order", "warm_up": 1}, blobs={"order": bytes([2, 0, 1, 0])})["timed"]
    assert len(found["wall_ns"]) == 4
    error = bound({**command, "modes": [1, 9], "order": "order"}, blobs={"order": b"\0\1"}, fails=True)
    assert (error["call"], error["code"], error["at"]) == ("rknn_mem_sync", -5, [0, 1])


SYNCS = {"op": "time_syncs", "memory": "in", "context": None, "modes": [1], "save": "timed"}


@pytest.mark.parametrize(
    ("command", "at", "words"),
    [
        (timed(count=10**6), 2, "of 1000000 timed runs"),
        (timed(count=10**6, perf_run=True), 2, "of 1000000 timed runs"),
        (timed(count=10**6, before=[{"op": "timestamp"}]), 2, "of 1000000 timed runs"),
        (timed(count=1, warm_up=10**6), 1, "of 1000000 runs to warm up"),
        ({**SYNCS, "count": 10**6}, 2, "of 1000000 timed runs"),
        ({"op": "time_no_op", "count": 10**6, "save": "timed"}, 2, "of 1000000 timed runs"),
    ],
    ids=lambda value: value["op"] if isinstance(value, dict) else None,
)
def test_a_timed_loop_gives_up_when_its_time_is_over(
    agent: Callable[..., Any], bound: Run, command: dict[str, Any], at: int, words: str
) -> None:
    """As ``repeat`` does: nobody waits for the rest, and the board is well."""
    reply = agent("execute", program={"commands": [command]}, deadline_s=0.02)
    assert reply["error"]["kind"] == "deadline", reply
    assert len(reply["error"]["at"]) == at
    assert "out of time after " in reply["error"]["message"]
    assert words in reply["error"]["message"]
    assert "timed" not in reply["values"]
    assert len(bound(timed(count=3))["timed"]["wall_ns"]) == 3


def test_the_binding_itself_is_measured(bound: Run) -> None:
    found = bound({"op": "time_no_op", "count": 2000, "warm_up": 10, "save": "timed"})["timed"]
    assert len(found["wall_ns"]) == 2000
    assert 0 < sorted(found["wall_ns"])[1000] < 100_000


def test_a_child_can_time(bound: Run) -> None:
    commands = [{"op": "time_no_op", "count": 5, "save": "timed"}]
    answer = bound({"op": "child", "commands": commands, "save": "child"})["child"]
    assert answer["outcome"] == "done", answer
    assert len(answer["reply"]["values"]["timed"]["wall_ns"]) == 5


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (timed(), "give one of count and order"),
        (timed(count=3, order="order"), "give one of count and order"),
        (timed("c", "c", count=3), "2 calls need an order"),
        (timed(order="order"), "each an index of one of the 1 calls"),
        (timed(order="none"), "order has 1 to 1000000 bytes"),
        (timed(count=0), "'count': expected an integer from 1"),
        (timed("nobody", count=1), "context 'nobody' is not known"),
        (timed(count=1) | {"contexts": []}, "a list of 1 to 16 names"),
        (timed(count=1, before=[{"op": "dance"}]), "unknown operation 'dance'"),
        ({"op": "time_syncs", "memory": "in", "context": None, "modes": [], "count": 1}, "1 to 16 integers"),
        ({"op": "time_no_op"}, "key 'count' is missing"),
        ({"op": "under_load", "commands": [], "processes": 65}, "an integer from 0 to 64"),
    ],
)
def test_malformed_commands(bound: Run, command: dict[str, Any], words: str) -> None:
    error = bound(command, blobs={"order": b"\0\1", "none": b""}, fails=True)
    assert error["kind"] == "program"
    assert words in error["message"]


def test_the_garbage_collector_rests_meanwhile_and_is_as_before() -> None:
    gc.enable()
    with no_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def children() -> list[int]:
    """The processes that this one started."""
    own = str(os.getpid())
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == own:
            found.append(int(entry.parent.name))
    return found


def test_load_is_there_during_the_commands_and_gone_after_them(bound: Run) -> None:
    before = set(children())
    with loaded(2, 2**20):
        busy = set(children()) - before
        assert len(busy) == 2
    assert set(children()) == before
    values = bound(
        {
            "op": "under_load",
            "processes": 1,
            "memory_bytes": 2**20,
            "commands": [timed(count=5)],
        }
    )
    assert len(values["timed"]["wall_ns"]) == 5
    failing = {
        "op": "under_load",
        "processes": 1,
        "commands": [{"op": "run", "context": "c", "save": "x"}, INIT],
    }
    assert bound(failing, fails=True)["at"] == [0, 1]
    assert set(children()) == before


def test_a_load_that_ends_too_early_is_refused() -> None:
    """What was measured under it was in part measured without."""
    before = set(children())

    def run() -> None:
        with loaded(2, 2**20):
            os.kill(min(set(children()) - before), signal.SIGKILL)
            until_dead(before)

    with pytest.raises(LibraryFailure, match=r"a load process ended too early \(exit code -9\)"):
        run()
    assert set(children()) == before


def until_dead(before: set[int]) -> None:
    """One of the children that are new is dead."""
    while not any(
        Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        for pid in set(children()) - before
    ):
        os.sched_yield()


@pytest.mark.parametrize(
    ("program", "ready_s", "words"),
    [("import time; time.sleep(60)", 0.2, "within 0.2 s"), ("raise SystemExit(3)", 20.0, "exit code 3")],
)
def test_a_load_that_does_not_start_is_told(
    monkeypatch: pytest.MonkeyPatch, program: str, ready_s: float, words: str
) -> None:
    monkeypatch.setattr(load, "PROGRAM", program)
    monkeypatch.setattr(load, "READY_S", ready_s)
    with pytest.raises(LibraryFailure, match=f"a load process did not start .*{words}"), loaded(1, 2**20):
        pass


def test_load_dies_with_the_agent() -> None:
    """A killed agent leaves no load process behind."""
    script = (
        "import os, signal\nfrom pytest_rknpu.agent.load import _start, _await\n"
        "process = _start(2**20); _await(process); print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    process = int(answer.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and Path(f"/proc/{process}").exists():
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break  # dead; the process that adopted it has not looked yet
        os.sched_yield()
    else:
        assert not Path(f"/proc/{process}").exists()


def test_the_no_op_is_where_it_is_looked_for() -> None:
    assert ctypes.CDLL(None).abs(-3) == 3
