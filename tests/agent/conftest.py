"""A fake runtime compiled at test time, and agents that use it: in this process, or shipped over execnet."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import execnet
import pytest

from pytest_rknpu.agent import bootstrap_source, sources
from pytest_rknpu.agent.log_capture import LogCapture
from pytest_rknpu.agent.serve import Agent

MODEL = b"FAKE model for the fake runtime"
TENSOR = 256
"""Bytes of the fake model's input and output; a run adds one to every byte."""

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def library(fake_runtime: str) -> dict[str, Any]:
    """The fake runtime as the ``library`` of a start request."""
    return {"kind": "shared-object", "path": fake_runtime, "context_bits": 64}


@pytest.fixture
def agent(library: dict[str, Any], tmp_path: Path) -> Iterator[Ask]:
    """A started agent in this process, with the fake model stored. Its log is not captured."""
    made = Agent(LogCapture(), sources)

    def ask(request: str, **keys: Any) -> dict[str, Any]:
        return made.handle({"request": request, **keys})

    assert ask("start", library=library, model_cache=str(tmp_path / "models"))["ok"]
    assert ask("put_model", sha256=hashlib.sha256(MODEL).hexdigest(), data=MODEL)["ok"]
    yield ask
    ask("reset")


@pytest.fixture
def run(agent: Ask) -> Callable[..., dict[str, Any]]:
    """Executes commands on the in-process agent; the reply must be ok unless ``fails``."""

    def execute(*commands: dict[str, Any], blobs: dict[str, bytes] | None = None, fails: bool = False) -> Any:
        reply = agent("execute", program={"commands": list(commands), "blobs": blobs or {}})
        assert reply["ok"] is not fails, reply
        return reply["error"] if fails else reply["values"]

    return execute


@pytest.fixture
def bound(run: Callable[..., Any]) -> Callable[..., Any]:
    """``run`` on an agent that has context ``c`` with memories ``in`` and ``out`` bound."""
    model = hashlib.sha256(MODEL).hexdigest()
    values = run(
        {"op": "init", "context": "c", "model": model},
        {"op": "query", "context": "c", "query": 1, "save": "input"},
        {"op": "query", "context": "c", "query": 2, "save": "output"},
    )
    run(
        {"op": "create_mem", "memory": "in", "context": "c", "size": TENSOR},
        {"op": "create_mem", "memory": "out", "context": "c", "size": TENSOR},
        {"op": "bind", "context": "c", "memory": "in", "attr": values["input"]},
        {"op": "bind", "context": "c", "memory": "out", "attr": values["output"]},
    )
    return run


def old_python() -> str | None:
    """A Python 3.8 to ship the agent to: RKNPU_TEST_PYTHON38, else python3.8 on the path, if it works."""
    candidate = os.environ.get("RKNPU_TEST_PYTHON38") or shutil.which("python3.8")
    if candidate is None:
        return None
    probed = subprocess.run([candidate, "-c", "import ctypes"], capture_output=True, check=False)
    return candidate if probed.returncode == 0 else None


@pytest.fixture(params=["this-python", "python3.8"])
def shipped(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """An agent shipped to a fresh interpreter over execnet, not started yet."""
    python = sys.executable if request.param == "this-python" else old_python()
    if python is None:
        pytest.skip("no working python3.8 on the path; name one in RKNPU_TEST_PYTHON38")
    group = execnet.Group()
    channel = group.makegateway(f"popen//python={python}").remote_exec(bootstrap_source())
    channel.send(json.dumps(sources()))

    def ask(request: str, **keys: Any) -> dict[str, Any]:
        channel.send({"request": request, **keys})
        reply: dict[str, Any] = channel.receive(30)
        return reply

    yield ask
    group.terminate(timeout=2)
