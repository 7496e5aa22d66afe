"""How the tests call the `rknpu` command."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_rknpu.cli.app import run


@dataclass(frozen=True)
class Answer:
    """What a command line left: exit code and both streams."""

    code: int
    out: str
    err: str


@pytest.fixture
def rknpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Run a command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Answer:
        code = run(arguments)
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def rknpu_process(tmp_path: Path):
    """Run a command line in a process of its own, in an empty folder."""

    def call(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest_rknpu.cli", *arguments]
        settings = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120} | options
        return subprocess.run(command, check=False, **settings)  # type: ignore[call-overload]

    return call
