"""SPARSE-08 on a board with a C runtime: green where it is sound, red with seeded faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def outcomes_of(folder: Path, *options: str) -> set[str]:
    """What the repeated runs on emu-rk3576 come to."""
    command = [
        *(sys.executable, "-m", "pytest", str(ROOT / "suites" / "sparse" / "test_sparse_results.py")),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-q"),
        *("--boards", str(ROOT / "boards.toml"), "--board", "emu-rk3576", "-k", "repeated_runs"),
        *("--rknpu-report", str(folder), "--rknpu-effort", "quick", *options),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    lines = (folder / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    assert len(records) == 3, done.stdout
    assert {tuple(record["requirement"][:1]) for record in records} == {("SPARSE-08",)}
    return {record["outcome"] for record in records}


def test_a_sound_board_passes(tmp_path: Path) -> None:
    assert outcomes_of(tmp_path) == {"pass"}


@pytest.mark.parametrize("fault", ["stale-previous-frame", "weights-scribbled", "output-incomplete"])
def test_a_faulty_board_fails(tmp_path: Path, fault: str) -> None:
    assert outcomes_of(tmp_path, "--rknpu-fault", fault) == {"fail"}
