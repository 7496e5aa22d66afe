"""Emulated boards that take their time, and the latency suites run on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, Npu, open_session
from pytest_rknpu.verdict import ItemRecord

CLONE = Path(__file__).parents[2]


def can_go_first() -> bool:
    """Whether this process may run before all others: else what runs beside a test shows in its times."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


@pytest.fixture(scope="session")
def undisturbed() -> bool:
    """Whether times of emulated boards can be trusted on this host."""
    return can_go_first()


OpenNpu = Callable[..., Npu]


@pytest.fixture
def npu_of() -> Iterator[OpenNpu]:
    """``npu_of(latency_model="steady", ...)``: the NPU of an emulated rk3588, as a suite gets it."""
    from contextlib import ExitStack

    with ExitStack() as resources:

        def of(**keys: Any) -> Npu:
            board = Board(**{"name": "desk", "soc": "rk3588", "runtime": "emulator", "seed": 1, **keys})
            session = resources.enter_context(open_session(board, seed=1))
            assert isinstance(session, BoardSession)
            return Npu(session, ItemRecord("test", (), 7), 7)

        yield of


@dataclass(frozen=True)
class SuiteRun:
    """What a run of suites left: results by test, and what was printed."""

    results: dict[str, dict[str, Any]]
    output: str
    code: int

    def outcome(self, test: str) -> str:
        """The outcome of the only item whose name begins with ``test``."""
        (found,) = [result for name, result in self.results.items() if name.startswith(test)]
        return str(found["outcome"])

    def message(self, test: str) -> str:
        """What it said."""
        (found,) = [result for name, result in self.results.items() if name.startswith(test)]
        return str(found["message"])


RunSuites = Callable[..., SuiteRun]


@pytest.fixture
def run_suites(tmp_path: Path) -> RunSuites:
    """``run_suites(boards.toml's text, suites..., options...)``: pytest on suites of this clone."""

    def run(boards: str, *arguments: str) -> SuiteRun:
        (tmp_path / "boards.toml").write_text(boards)
        paths = [str(CLONE / word) if word.startswith("suites/") else word for word in arguments]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(CLONE)),
                *("--boards", "boards.toml", "--rknpu-report", "report", "--rknpu-effort", "quick"),
                *("--rknpu-seed", "5", *paths),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        file = tmp_path / "report" / "results.jsonl"
        lines = file.read_text().splitlines()[1:] if file.exists() else []
        results = {result["nodeid"].partition("::")[2]: result for result in map(json.loads, lines)}
        return SuiteRun(results, done.stdout + done.stderr, done.returncode)

    return run
