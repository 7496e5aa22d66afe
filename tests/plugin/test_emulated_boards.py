"""The plugin with real sessions: emulated boards in their own processes, and what if such a process dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin.project import Project
from plugin.schemas import properties_of, results_validator, validate_junit

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def emulated(pytester: pytest.Pytester) -> Project:
    """A project whose boards are the emulator's, through the real session, transport and agent."""
    project = Project(pytester, pytester.path / "events")
    project.boards(
        '[[board]]\nname = "one"\nsoc = "rk3588"\nruntime = "emulator"\n'
        '[[board]]\nname = "two"\nsoc = "rk3576"\nruntime = "emulator"\n'
    )
    return project


@pytest.mark.parametrize("workers", [0, 2])
def test_a_board_process_that_dies_in_a_test(emulated: Project, workers: int) -> None:
    emulated.tests(
        """
import os, signal

@pytest.mark.requirement("VER-01")
@pytest.mark.parametrize("n", range(3))
def test_it(board, n):
    if n == 1 and board.board.name == "one":
        os.kill(board.agent["pid"], signal.SIGKILL)
    board.request({"request": "probe"})
"""
    )
    run = emulated.pytester.runpytest_subprocess(
        "-p",
        "no:cacheprovider",
        "--boards",
        "boards.toml",
        "--rknpu-report",
        "out",
        "-n",
        str(workers),
        timeout=120,
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    _, results = emulated.results()
    outcomes = {name: result["outcome"] for name, result in results.items()}
    lost = outcomes.pop("test_it[one-1]")
    assert lost == "infra"
    assert set(outcomes.values()) == {"pass"}
    assert len(outcomes) == 5
    validator = results_validator()
    for result in results.values():
        validator.validate(result)
        assert result["versions"]["runtime"].startswith("emulated ")
        assert result["evidence"] == "emulator"
    suite = validate_junit((emulated.pytester.path / "out/junit/one.xml").read_text()).find("testsuite")
    assert (suite.get("tests"), suite.get("errors")) == ("3", "1")
    assert properties_of(suite)["runtime"].startswith("emulated ")


def test_a_shipped_test_runs_on_the_shipped_boards(emulated: Project) -> None:
    run = emulated.pytester.runpytest_subprocess(
        "--rootdir",
        str(REPOSITORY),
        "-c",
        str(REPOSITORY / "pyproject.toml"),
        "-p",
        "no:cacheprovider",
        str(REPOSITORY / "suites/sync/test_directions.py"),
        "-k",
        "context_argument",
        "--rknpu-effort",
        "quick",
        "--rknpu-report",
        str(emulated.pytester.path / "out"),
        timeout=180,
    )
    assert run.ret == 0
    _, results = emulated.results()
    assert {result["board"] for result in results.values()} == {"emu-rk3588", "emu-rk3576", "emu-rv1106"}
    assert {tuple(result["requirement"]) for result in results.values()} == {("SYNC-12",)}
