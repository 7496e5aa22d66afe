"""Two users of one emulated machine are noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_rknpu.emulator import occupancy
from pytest_rknpu.emulator.occupancy import MACHINE_VARIABLE

OPEN = """
import subprocess, sys
from pytest_rknpu.emulator import occupancy, open_library
occupancy._GRACE_SECONDS = 0.3
open_library({"soc": "rk3588"})
if "child" in sys.argv:
    raise SystemExit(subprocess.run([sys.executable, "-c", sys.argv[-1]]).returncode)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of a machine that processes started in the test are on."""
    monkeypatch.setenv(MACHINE_VARIABLE, str(tmp_path / "machine"))
    return tmp_path / "machine"


@contextmanager
def user() -> Iterator[subprocess.Popen[str]]:
    """A process that uses the machine."""
    process = subprocess.Popen([sys.executable, "-c", OPEN], stdin=-1, stdout=-1, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.communicate(timeout=20)


def test_a_second_user_is_refused_and_written_down(machine: Path) -> None:
    with user() as first:
        second = subprocess.run(
            [sys.executable, "-c", OPEN], capture_output=True, text=True, timeout=60, check=False
        )
    assert second.returncode != 0
    words = f"emulated machine {machine} is used twice: by process {first.pid}, and by process"
    assert words in second.stderr
    assert words in Path(f"{machine}.twice").read_text()


def test_users_may_follow_each_other_also_after_a_kill(machine: Path) -> None:
    with user() as first:
        first.kill()
    with user():
        pass
    assert not Path(f"{machine}.twice").exists()


def test_children_of_a_user_are_the_same_user(machine: Path) -> None:
    command = [sys.executable, "-c", OPEN, "child", OPEN]
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, b"open\n")


def test_without_a_machine_nobody_minds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MACHINE_VARIABLE, raising=False)
    occupancy.occupy()
    assert "RKNPU_EMULATED_MACHINE_OURS" not in os.environ
