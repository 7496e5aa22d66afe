"""A project of a user and pytest to run on it."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# pytester forgets after each run what was imported in it: hypothesis' plugin would import it each time.
_QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")

# For runs that a test wants to look at, or to end, while they go on.
PYTEST = (sys.executable, "-m", "pytest", "--boards", "boards.toml")


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = 30.0) -> None:
    """Poll for something that another process does. Fails with ``what`` if it does not come about."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        threading.Event().wait(0.02)


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
        return self.run_bare("--boards", "boards.toml", *arguments, workers=workers)

    def run_bare(self, *arguments: str, workers: int = 0) -> pytest.RunResult:
        """As `run`, without telling pytest where the boards are."""
        if workers:
            return self.pytester.runpytest_subprocess(*_QUIET, "-n", str(workers), *arguments)
        return self.pytester.runpytest_inprocess(*_QUIET, *arguments)

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
