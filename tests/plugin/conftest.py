"""A project of a user, with boards that cost nothing: see fake_session.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_BOARDS = """
[[board]]
name = "alpha"
soc = "rk3588"
runtime = "emulator"

[[board]]
name = "beta"
soc = "rk3576"
runtime = "emulator"
"""

_CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import fake_session
sys.modules["pytest_rknpu.session"] = fake_session
"""


@dataclass(frozen=True)
class Project:
    """A folder with boards.toml and tests, and pytest to run on it."""

    pytester: pytest.Pytester
    events: Path

    def boards(self, text: str) -> None:
        """Replace boards.toml."""
        (self.pytester.path / "boards.toml").write_text(text, encoding="utf-8")

    def tests(self, source: str) -> None:
        """Write test_it.py, with what such a file usually imports."""
        header = "import pytest\nfrom pytest_rknpu.errors import *\n"
        self.pytester.makepyfile(test_it=header + source)

    def run(self, *arguments: str, workers: int = 0) -> pytest.RunResult:
        """Run pytest on the project; with workers in a process of its own, as xdist wants."""
        common = ("--boards", "boards.toml", "-p", "no:cacheprovider")
        if workers:
            return self.pytester.runpytest_subprocess(*common, "-n", str(workers), *arguments)
        return self.pytester.runpytest_inprocess(*common, *arguments)

    def results(self, folder: str = "out") -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The run's record, and those of the tests by name."""
        lines = (self.pytester.path / folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
        run, *tests = map(json.loads, lines)
        return run, {test["nodeid"].partition("::")[2]: test for test in tests}

    def opened(self) -> list[str]:
        """The boards that were opened, in order."""
        if not self.events.exists():
            return []
        lines = self.events.read_text(encoding="utf-8").splitlines()
        return [line.split()[1] for line in lines if line.startswith("open")]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with the boards alpha (rk3588) and beta (rk3576)."""
    events = pytester.path / "events"
    monkeypatch.setenv("RKNPU_FAKE_EVENTS", str(events))
    pytester.makeconftest(_CONFTEST)
    project = Project(pytester, events)
    project.boards(_BOARDS)
    return project


@pytest.fixture
def one_board(project: Project) -> Callable[..., pytest.RunResult]:
    """Run the project on alpha alone, with a report."""

    def run(*arguments: str, workers: int = 0) -> pytest.RunResult:
        return project.run("--board", "alpha", "--rknpu-report", "out", *arguments, workers=workers)

    return run
