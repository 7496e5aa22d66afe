"""Runs the shipped suites on emulated boards in a process of their own, and reads what they recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "suites"


@dataclass(frozen=True)
class SuiteRun:
    """What a run of the suites came to: its exit code, one record per test, and the terminal's text."""

    exit_code: int
    records: list[dict[str, Any]]
    text: str

    def with_outcome(self, *outcomes: str) -> list[dict[str, Any]]:
        """The records that have one of ``outcomes``."""
        return [record for record in self.records if record["outcome"] in outcomes]


RunSuites = Callable[..., SuiteRun]


@pytest.fixture
def run_suites(tmp_path: Path) -> RunSuites:
    """``run_suites(boards_toml, *options)``: pytest on the shipped suites with these boards."""

    def run(boards: str, *options: str, suites: tuple[str, ...] = ("",)) -> SuiteRun:
        folder = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        folder.mkdir()
        (folder / "boards.toml").write_text(boards)
        command = [
            *(sys.executable, "-m", "pytest", *(str(SUITES / name) for name in suites)),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-q"),
            *("--boards", str(folder / "boards.toml"), "--rknpu-report", str(folder / "report"), *options),
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        text = done.stdout + done.stderr
        results = folder / "report" / "results.jsonl"
        assert results.exists(), text
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        return SuiteRun(done.returncode, [line for line in lines if "outcome" in line], text)

    return run
