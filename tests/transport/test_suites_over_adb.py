"""Conformance suites on an emulated board behind adb.

By default those of cache lines; with ``RKNPU_TEST_FULL=1`` all of SYNC and MEM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from adb_server import needs_adb, running_adb_server

pytestmark = needs_adb
CLONE = Path(__file__).parents[2]
SUITES = ["sync", "memory"] if os.environ.get("RKNPU_TEST_FULL") else ["sync/test_cache_lines.py"]


def outcomes(folder: Path, *options: str) -> Counter[str]:
    """Run the suites on the board behind adb; how many tests had which outcome."""
    boards = folder / "boards.toml"
    boards.write_text(
        '[[board]]\nname = "behind-adb"\nsoc = "rk3588"\nruntime = "emulator"\ntransport = "adb"\n'
        f'serial = "A1B2"\npython = "{sys.executable}"\nseed = 1\n'
    )
    report = folder / "report"
    chosen = [f"suites/{suite}" for suite in SUITES]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *chosen,
        "--boards",
        str(boards),
        "--rknpu-report",
        str(report),
    ]
    subprocess.run([*command, *options], cwd=CLONE, capture_output=True, check=False)
    lines = (report / "results.jsonl").read_text().splitlines()
    return Counter(entry["outcome"] for entry in map(json.loads, lines) if "outcome" in entry)


def test_suites_pass_through_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_adb_server(monkeypatch, modern=False) as server:
        found = outcomes(tmp_path)
    assert found["pass"] >= 5
    assert set(found) <= {"pass", "skip"}
    assert any(service.startswith("shell:") for service in server.asked)


def test_suites_catch_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_adb_server(monkeypatch) as server:
        found = outcomes(tmp_path, "--rknpu-fault", "sync-to-device-dropped")
    assert found["fail"] >= 5
    assert not found["infra"]
    assert any(service.startswith("shell,v2") for service in server.asked)
