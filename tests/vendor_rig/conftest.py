"""What the tests of the rig share: boards that are made for one test, and runs of the suites on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.vendor_rig import parts
from tests.vendor_rig.rig import RigBoard, make_board
from tests.vendor_rig.thin_path import ThinPath

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "suites"
FULL = bool(os.environ.get("RKNPU_TEST_FULL"))
"""Everything instead of the part that shows each thing once: all suites on both SoCs, all driver faults."""

MakeBoard = Callable[..., RigBoard]
MakeThinPath = Callable[..., ThinPath]


@dataclass(frozen=True)
class SuiteRun:
    """A run of the suites: exit code, the records of results.jsonl, and what the terminal said."""

    exit_code: int
    records: Sequence[dict[str, Any]]
    text: str

    def outcomes(self) -> dict[str, list[str]]:
        """The names of the tests by outcome, without the board's."""
        found: dict[str, list[str]] = {}
        for record in self.records:
            found.setdefault(record["outcome"], []).append(record["nodeid"])
        return found

    def requirements(self, *outcomes: str) -> set[str]:
        """The requirements of the tests with one of ``outcomes``."""
        return {
            each for record in self.records if record["outcome"] in outcomes for each in record["requirement"]
        }


RunSuites = Callable[..., SuiteRun]


@pytest.fixture
def board(tmp_path: Path) -> MakeBoard:
    """``board(soc, {"FAULTS": ..})``: a board of the rig. Skips with the proof of what is missing."""

    def make(soc: str = "rk3588", settings: dict[str, str] | None = None, *, python: str = "") -> RigBoard:
        try:
            return make_board(
                tmp_path / f"board{len(list(tmp_path.iterdir()))}", soc, settings or {}, python=python
            )
        except parts.CannotBeHad as error:
            pytest.skip(str(error))

    return make


@pytest.fixture
def thin_path(board: MakeBoard, tmp_path: Path) -> MakeThinPath:
    """``thin_path(soc, settings)``: a C program on a board of its own."""
    folder = tmp_path / "files"
    folder.mkdir()
    return lambda soc="rk3588", settings=None: ThinPath(board(soc, settings), folder)


@pytest.fixture
def run_suites(tmp_path: Path) -> RunSuites:
    """``run_suites(board, "sync", .., "--rknpu-effort=quick")``: pytest on the shipped suites."""

    def run(on: RigBoard, *words: str, boards: str | None = None) -> SuiteRun:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "boards.toml").write_text(boards or on.table)
        suites = [str(SUITES / word) for word in words if not word.startswith("-")]
        command = [
            *(sys.executable, "-m", "pytest", *suites, *(word for word in words if word.startswith("-"))),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-q"),
            *("--boards", str(folder / "boards.toml"), "--rknpu-report", str(folder / "report")),
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        results = folder / "report" / "results.jsonl"
        assert results.exists(), done.stdout + done.stderr
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        records = [line for line in lines if "outcome" in line]
        return SuiteRun(done.returncode, records, done.stdout + done.stderr)

    return run
