"""A failure prints one command that replays it: the same failure, to the byte."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOARD = '[[board]]\nname = "faulty"\nsoc = "rk3588"\nruntime = "emulator"\n'
# What a clock or a handle number may change between two runs.
VOLATILE = re.compile(r"\d\d:\d\d:\d\d\.\d{3}|0x5a[0-9a-f]{6}")


def failures(folder: Path, *arguments: str) -> tuple[dict[str, str], str]:
    """Node id -> message of all that failed, and the terminal's text."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rknpu-report", "report"]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    lines = (folder / "report" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    failed = [json.loads(line) for line in lines if '"outcome": "fail"' in line]
    return {one["nodeid"]: VOLATILE.sub("#", one["message"]) for one in failed}, done.stdout


@pytest.mark.parametrize(
    ("fault", "file"),
    [
        ("sync-last-line-missing", "suites/sync/test_random_programs.py"),
        ("weights-scribbled", "suites/sync/test_ownership.py"),
    ],
)
def test_the_printed_command_replays_the_failure(tmp_path: Path, fault: str, file: str) -> None:
    (tmp_path / "boards.toml").write_text(BOARD, encoding="utf-8")
    first, shown = failures(
        tmp_path,
        str(ROOT / file),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--boards", "boards.toml"),
        *("--rknpu-fault", fault, "--rknpu-effort", "quick", "--rknpu-seed", "77"),
    )
    assert first, shown
    again = re.search(r"again: pytest (.+)", shown)
    assert again is not None, shown
    second, replayed = failures(tmp_path, *shlex.split(again[1]), "-c", str(ROOT / "pyproject.toml"))
    assert len(second) == 1, replayed
    for nodeid, message in second.items():
        assert message == first[nodeid]
