"""Runs of pytest on a labgrid farm, with emulated boards behind its places."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from labgrid_farm import Farm, takes_long
from plugin.project import PYTEST, wait_until

HEADER = """
import os, pathlib, time
import pytest

def stop_here(name):
    pathlib.Path(name).write_text(str(os.getpid()))
    deadline = time.monotonic() + 60
    while pathlib.Path(name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
"""

ONE_STOPS = (
    HEADER
    + """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(4))
def test_it(npu, n):
    if n == 1:
        stop_here("stopped")
    assert npu.reset_works()
""".replace("assert npu.reset_works()", "npu.session.reset()")
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def start(output: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A run in the working folder, with a report in ``out``."""
    quiet = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    command = [*PYTEST, *quiet, "--rknpu-report", "out", *arguments]
    with output.open("wb") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)


def results(folder: str = "out") -> dict[str, dict[str, Any]]:
    lines = Path(folder, "results.jsonl").read_text().splitlines()[1:]
    return {test["nodeid"].partition("::")[2]: test for test in map(json.loads, lines)}


def outcomes(folder: str = "out") -> list[str]:
    return [test["outcome"] for _, test in sorted(results(folder).items())]


def stopped_run(farm: Farm, folder: Path) -> subprocess.Popen[bytes]:
    """A run on the place shelf-0 that has stopped in its second test."""
    Path("boards.toml").write_text(farm.board("desk", 'place = "shelf-0"'))
    Path("test_it.py").write_text(ONE_STOPS)
    run = start(folder / "said")
    wait_until(Path("stopped").exists, "the second test", 60)
    return run


def test_a_place_taken_away_costs_the_test_that_ran_and_no_other(farm: Farm, folder: Path) -> None:
    run = stopped_run(farm, folder)
    farm.ask("release", "shelf-0")
    Path("stopped").unlink()
    assert run.wait(timeout=60) == pytest.ExitCode.TESTS_FAILED, (folder / "said").read_text()
    assert outcomes() == ["pass", "infra", "pass", "pass"]
    message = results()["test_it[desk-1]"]["message"]
    assert "the lease was lost: place shelf-0 was released by somebody else" in message


@takes_long
def test_a_place_that_somebody_else_has_now_is_waited_for(farm: Farm, folder: Path) -> None:
    run = stopped_run(farm, folder)
    farm.ask("release", "shelf-0")
    farm.ask("acquire", "shelf-0")
    Path("stopped").unlink()
    wait_until(lambda: "waiting for up to" in (folder / "said").read_text(), "it waits", 60)
    farm.ask("release", "shelf-0")
    run.wait(timeout=60)
    assert outcomes() == ["pass", "infra", "pass", "pass"]


@takes_long
def test_a_coordinator_that_crashes_costs_the_test_that_ran(farm: Farm, folder: Path) -> None:
    run = stopped_run(farm, folder)
    farm.kill_coordinator()
    farm.require_sound()
    Path("stopped").unlink()
    run.wait(timeout=90)
    assert outcomes() == ["pass", "infra", "pass", "pass"]
    assert "or its coordinator started anew" in results()["test_it[desk-1]"]["message"]


@takes_long
def test_a_coordinator_that_stays_away_costs_no_result(farm: Farm, folder: Path) -> None:
    run = stopped_run(farm, folder)
    farm.kill_coordinator()
    Path("stopped").unlink()
    assert run.wait(timeout=120) == pytest.ExitCode.TESTS_FAILED
    assert outcomes() == ["pass", "infra", "infra", "infra"]
    assert "the coordinator went away" in results()["test_it[desk-1]"]["message"]
    assert "cannot be reached" in results()["test_it[desk-2]"]["message"]


def test_a_run_that_is_killed_frees_its_place(farm: Farm, folder: Path) -> None:
    run = stopped_run(farm, folder)
    assert list(farm.holders()) == ["shelf-0"]
    run.kill()
    run.wait(timeout=20)
    wait_until(lambda: farm.holders() == {}, "the place is free", 20)
    assert outcomes() == ["pass"]
    Path("stopped").unlink()
    again = start(folder / "again", "--rknpu-wait", "0", "-k", "desk-0")
    assert again.wait(timeout=60) == 0, (folder / "again").read_text()


def test_a_worker_that_is_killed_loses_one_test_and_frees_its_place(farm: Farm, folder: Path) -> None:
    Path("boards.toml").write_text(
        farm.board("left", 'place = "shelf-0"') + farm.board("right", 'place = "shelf-1"')
    )
    Path("test_it.py").write_text(
        ONE_STOPS.replace("if n == 1", 'if n == 1 and npu.session.board.name == "left"')
    )
    run = start(folder / "said", "-n", "2")
    wait_until(Path("stopped").exists, "the second test", 60)
    os.kill(int(Path("stopped").read_text()), signal.SIGKILL)
    assert run.wait(timeout=90) == pytest.ExitCode.TESTS_FAILED
    assert outcomes() == ["pass", "harness", *["pass"] * 6], (folder / "said").read_text()


CROWD = (
    HEADER
    + """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(24))
def test_it(npu, n):
    npu.session.reset()
    time.sleep(0.3)
    npu.session.reset()
"""
)


@takes_long
def test_runs_and_workers_share_boards_and_no_board_is_used_twice_at_once(farm: Farm, folder: Path) -> None:
    """Eight workers and a second run, four boards; the emulated machines tell if two users meet on one."""
    named = "".join(farm.board(f"desk{number}", f'place = "shelf-{number}"') for number in range(4))
    Path("boards.toml").write_text(named)
    Path("any.toml").write_text(farm.board("any", 'filter = { soc = "rk3588" }', places="2"))
    Path("test_it.py").write_text(CROWD)
    crowd = start(folder / "crowd", "-n", "8", "--rknpu-per", "soc")
    other = start(
        folder / "other", "-n", "2", "--rknpu-per", "soc", "--boards", "any.toml", "--rknpu-report", "two"
    )
    ended = [run.wait(timeout=300) for run in (crowd, other)]
    assert ended == [0, 0], (folder / "crowd").read_text() + (folder / "other").read_text()
    for report in ("out", "two"):
        assert set(outcomes(report)) == {"pass"}
        assert len(outcomes(report)) == 24
    assert len({test["ran_on"] for test in results().values()}) > 1
    assert {test["board"] for test in results().values()} == {"rk3588"}
