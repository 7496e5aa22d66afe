"""Below pytest's own output, at a terminal: how far each board is and what runs there now.

Nothing ticks in the background: the lines are written anew when a test begins or ends, here or in a worker.
So they cost no thread, and a test that has to be looked at in a debugger is left alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import pytest

from pytest_rknpu.report.below import BelowCursor
from pytest_rknpu.report.matrix import Line
from pytest_rknpu.report.not_tried import without_calls
from pytest_rknpu.report.progress import Progress
from pytest_rknpu.report.results import Result
from pytest_rknpu.report.terminal import MARKUP, printable

NAME = "rknpu-live"
"""Under which the plugin is registered."""

_FEWEST_ROWS = 8
_SHARE_OF_ROWS = 0.5

Planned = Callable[[], "Mapping[str, str | None]"]


def is_wanted(config: pytest.Config) -> bool:
    """Whether somebody is looking: at a terminal that can move its cursor, and that pytest has for itself.

    Not in CI, with -q, with -s (tests write there then) or beside a plugin with a display of its own.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if type(terminal) is not pytest.TerminalReporter or not terminal.isatty():
        return False
    option, environment = config.option, os.environ
    return (
        option.rknpu_progress == "auto"
        and option.verbose >= 0
        and option.capture == "fd"
        and not without_calls(config)
        and environment.get("TERM", "dumb") not in ("", "dumb")
        and not any(environment.get(name) for name in ("CI", "BUILD_NUMBER"))  # what pytest itself asks
    )


class Live:
    """Registered as a plugin in the process that reports, from the start of the session to its end."""

    def __init__(self, config: pytest.Config, planned: Planned, results: Sequence[Result]) -> None:
        """``planned`` is asked for when the first test begins, ``results`` is watched as it grows."""
        terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._writer = terminal._tw  # no public name
        self._below = BelowCursor(self._writer._file)
        self._writer._file = self._below
        self._planned = planned
        self._results = results
        self._seen = 0
        self._progress: Progress | None = None

    def show(self) -> None:
        """Write the lines; to be called when something else has been written."""
        size = self._below.size()
        if self._progress is None or size.lines < _FEWEST_ROWS:
            return
        lines = self._progress.lines(size.columns, int(size.lines * _SHARE_OF_ROWS))
        if lines:  # none where no test is ours
            self._below.show([self._painted(line) for line in lines])

    def close(self) -> None:
        """Leave the terminal as it would be without this."""
        if self._writer._file is self._below:
            self._writer._file = self._below.above
            self._below.close()
            self._progress = None

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist: workers write to the same terminal."""
        node.workerinput["rknpu_live"] = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> Generator[None, object, object]:
        """A test begins, here or in a worker."""
        result = yield
        if self._progress is None:
            self._progress = Progress(self._planned())
        if self._progress.started(nodeid, time.strftime("%H:%M:%S")):
            self.show()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, object, object]:
        """A phase of a test ended."""
        result = yield
        new = self._results[self._seen :]
        self._seen += len(new)
        if self._progress is not None:
            for each in new:
                self._progress.ended(each)
        if new or not self._below.shown:
            self.show()
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """What follows is pytest's alone."""
        self.close()

    def pytest_unconfigure(self) -> None:
        """Also where the session did not come to its end."""
        self.close()

    def _painted(self, line: Line) -> str:
        return "".join(
            self._writer.markup(printable(piece.text), **(MARKUP[piece.outcome] if piece.outcome else {}))
            for piece in line
        )
