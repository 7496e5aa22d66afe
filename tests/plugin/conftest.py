"""A project of a user, with boards that cost nothing: see fake_session.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plugin.project import Project

# Imported here once: pytester forgets after each run what was imported during it.
import pytest_rknpu.emulator
import pytest_rknpu.inventory.selection
import pytest_rknpu.report.junit
import pytest_rknpu.report.page.render
import pytest_rknpu.session  # noqa: F401

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
