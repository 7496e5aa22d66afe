"""The agent as a board runs it: shipped over execnet to this Python and, where there is one, to 3.8."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import execnet
import pytest

from pytest_rknpu.agent import sources
from pytest_rknpu.agent.log_capture import LogCapture
from pytest_rknpu.agent.serve import Agent, serve

Ask = Callable[..., dict[str, Any]]
DATA = b"FAKE model"
MODEL = hashlib.sha256(DATA).hexdigest()


def test_a_session_from_start_to_stop(shipped: Ask, library: dict[str, Any], tmp_path: Path) -> None:
    started = shipped("start", library=library, root=str(tmp_path), model_cache=str(tmp_path / "models"))
    assert started["ok"]
    assert "rknn_mem_sync" in started["functions"]
    assert "rknn_create_mem2" not in started["functions"]
    assert started["pid"] > 0
    assert shipped("has_models", hashes=[MODEL])["present"] == []
    assert shipped("put_model", sha256=MODEL, data=DATA)["ok"]
    assert shipped("has_models", hashes=[MODEL])["present"] == [MODEL]

    run_once = [
        {"op": "write", "memory": "in", "cycle": ["a", "b"]},
        {"op": "sync", "memory": "in", "mode": 1},
        {"op": "run", "context": "c"},
        {"op": "sync", "memory": "out", "mode": 2},
        {"op": "compare", "memory": "out", "cycle": ["a+1", "b+1"], "save": "verdict"},
    ]
    tensor = {"n_dims": 1, "dims": [256], "size_with_stride": 256}
    program = {
        "commands": [
            {"op": "init", "context": "c", "model": MODEL},
            {"op": "create_mem", "memory": "in", "context": "c", "size": 256, "save": "memory"},
            {"op": "create_mem", "memory": "out", "context": "c", "size": 256},
            {"op": "bind", "context": "c", "memory": "in", "attr": {**tensor, "name": "input"}},
            {"op": "bind", "context": "c", "memory": "out", "attr": {**tensor, "name": "output"}},
            {"op": "repeat", "count": 3000, "commands": run_once},
            {
                "op": "child",
                "commands": [{"op": "call", "function": "rknn_test_crash", "arguments": []}],
                "save": "child",
            },
            {"op": "query", "context": "c", "query": 1, "save": "input"},
        ],
        "blobs": {"a": bytes(256), "a+1": b"\1" * 256, "b": b"\5" * 256, "b+1": b"\6" * 256},
    }
    reply = shipped("execute", program=program)
    assert reply["ok"], reply
    assert reply["values"]["verdict"] == {"comparisons": 3000, "mismatches": 0, "first": None}
    assert reply["values"]["memory"]["phys_addr"] == 2**32
    assert reply["values"]["child"]["signal"] == "SIGSEGV"
    assert "E RKNN: last words" in reply["values"]["child"]["log"]
    assert reply["values"]["input"]["scale"] == 0.5
    assert reply["duration_ns"] > 0

    facts = shipped("probe")["facts"]
    assert all(set(entry) <= {"value", "absent", "blocked"} for entry in facts.values())
    assert shipped("reset")["left_behind"] == ["in", "out", "c"]
    assert shipped("stop") == {"ok": True, "log": ""}


def test_each_reply_carries_the_log_since_the_last(
    shipped: Ask, library: dict[str, Any], tmp_path: Path
) -> None:
    assert shipped("start", library=library, model_cache=str(tmp_path))["log"] == ""
    noise = {"op": "init", "context": "n", "data": "noise", "expect": "any"}
    program = {"commands": [noise], "blobs": {"noise": b"noise"}}
    assert shipped("execute", program=program)["log"] == "E RKNN: [00:00:00.000] 6, 1\n"
    assert shipped("execute", program={"commands": []})["log"] == ""
    failing = {"commands": [noise, {"op": "run", "context": "n"}], "blobs": {"noise": b"noise"}}
    reply = shipped("execute", program=failing)
    assert (reply["ok"], reply["log"]) == (False, "E RKNN: [00:00:00.000] 6, 1\n")


def test_the_agent_outlives_bad_requests(shipped: Ask, library: dict[str, Any], tmp_path: Path) -> None:
    assert shipped("execute", program={"commands": []})["error"]["kind"] == "program"  # not started
    missing = {"kind": "shared-object", "path": str(tmp_path / "librknnrt.so")}
    assert shipped("start", library=missing)["error"]["kind"] == "library"
    assert shipped("start", library={"kind": "python", "entry": "nowhere:open"})["error"]["kind"] == "library"
    assert shipped("dance")["error"]["kind"] == "program"
    assert shipped("start", library=library, model_cache=str(tmp_path))["ok"]
    assert shipped("execute", program={"commands": [{"op": "timestamp", "save": "t"}]})["ok"]


def test_a_second_start_begins_anew(shipped: Ask, library: dict[str, Any], tmp_path: Path) -> None:
    shipped("start", library=library, model_cache=str(tmp_path))
    program = {"commands": [{"op": "init", "context": "c", "data": "m"}], "blobs": {"m": b"FAKE"}}
    assert shipped("execute", program=program)["ok"]
    assert shipped("start", library=library, model_cache=str(tmp_path))["ok"]
    assert shipped("execute", program=program)["ok"]


def test_an_unforeseen_exception_is_told_and_survived(
    monkeypatch: pytest.MonkeyPatch, library: dict[str, Any]
) -> None:
    agent = Agent(LogCapture(), sources)

    def explode(*_: Any) -> dict[str, Any]:
        raise ZeroDivisionError("not foreseen")

    monkeypatch.setattr("pytest_rknpu.agent.serve.probe", explode)
    reply = agent.handle({"request": "probe"})
    assert reply["error"]["kind"] == "internal"
    assert "ZeroDivisionError: not foreseen" in reply["error"]["message"]
    assert "explode" in reply["error"]["message"]
    assert agent.handle({"request": "start", "library": library})["ok"]


class Channel:
    """A channel that answers from a list and refuses what the link cannot carry."""

    def __init__(self, *requests: Any) -> None:
        self.requests = list(requests)
        self.sent: list[Any] = []

    def receive(self) -> Any:
        if not self.requests:
            raise EOFError
        return self.requests.pop(0)

    def send(self, reply: Any) -> None:
        execnet.dumps(reply)
        self.sent.append(reply)


def test_serving_ends_with_the_channel_and_with_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogCapture, "start", lambda self: None)  # pytest holds the descriptors here
    ended = Channel({"request": "probe"})
    serve(ended)
    assert [reply["ok"] for reply in ended.sent] == [True]
    stopped = Channel({"request": "stop"}, {"request": "probe"})
    serve(stopped)
    assert len(stopped.requests) == 1


def test_a_reply_that_the_link_cannot_carry_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogCapture, "start", lambda self: None)
    monkeypatch.setattr("pytest_rknpu.agent.serve.probe", lambda *_: {"odd": object()})
    channel = Channel({"request": "probe"}, {"request": "has_models", "hashes": []})
    serve(channel)
    assert channel.sent[0]["error"]["kind"] == "internal"
    assert channel.sent[1]["ok"]


def test_the_sources_are_complete_and_import_nothing_but_the_standard_library() -> None:
    shipped_modules = sources()
    folder = Path(sys.modules["pytest_rknpu.agent"].__path__[0])
    assert set(shipped_modules) == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    seen: set[str] = set()
    for name, text in shipped_modules.items():
        for node in ast.walk(ast.parse(text, feature_version=(3, 8))):
            if isinstance(node, ast.Import):
                assert all(alias.name.split(".")[0] in sys.stdlib_module_names for alias in node.names), name
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                assert node.module is not None
                assert node.module.split(".")[0] in sys.stdlib_module_names, name
            elif isinstance(node, ast.ImportFrom) and node.col_offset == 0:
                imported = {node.module} if node.module else {alias.name for alias in node.names}
                assert imported <= seen, f"{name} imports {imported - seen} before they are installed"
        seen.add(name)
