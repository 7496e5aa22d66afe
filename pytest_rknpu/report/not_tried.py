"""Tests that a board in quarantine did not get: they did not pass, yet they are no failures of their own.

pytest shows each failure at length, and gives up after so many (``--maxfail``). The tests that a dead board
did not get would drown all else, and end the run for the other boards. So they have a category of their own
at the terminal, are not counted there, and are told in one line for each board. Everywhere else they remain
failures: ``--lf`` runs them again, the exit code is 1, and JUnit files have them as errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_rknpu.errors import BoardQuarantined
from pytest_rknpu.report.results import Result

_WITHOUT_CALLS = ("collectonly", "setuponly", "setupplan")

STATUS: tuple[str, str, tuple[str, Mapping[str, bool]]] = ("not tried", "I", ("NOT TRIED", {"purple": True}))
"""Category, letter and word for pytest."""


def was_tried(excinfo: pytest.ExceptionInfo[BaseException] | None) -> bool:
    """Whether a phase that ended so has anything to do with the test itself."""
    return excinfo is None or not isinstance(excinfo.value, BoardQuarantined)


def is_not_tried(report: object) -> bool:
    """Whether a report is that of a test which was not tried."""
    carried = getattr(report, "rknpu", None)
    return carried is not None and not carried.get("tried", True)


def uncount(config: pytest.Config, report: pytest.TestReport) -> None:
    """To be called before pytest (and xdist's controller) count the report as a failure."""
    if not (report.failed and is_not_tried(report)):
        return
    for plugin, counter in (("session", "testsfailed"), ("dsession", "countfailures")):
        counting = config.pluginmanager.get_plugin(plugin)
        if isinstance(getattr(counting, counter, None), int):
            setattr(counting, counter, getattr(counting, counter) - 1)


def quarantine_lines(results: Sequence[Result]) -> Iterator[str]:
    """One line for each board that did not get all its tests: what happened, and how many those are."""
    for board in dict.fromkeys(result.board for result in results if not result.tried):
        own = [result for result in results if result.board == board]
        missed = [result for result in own if not result.tried]
        cause = missed[0].message.partition("\n")[0]
        yield f"{cause}; {len(missed)} of its {len(own)} tests were not tried"


def without_calls(config: pytest.Config) -> bool:
    """Whether the options are such that no test function is called."""
    return any(getattr(config.option, name, False) for name in _WITHOUT_CALLS)


def not_run_lines(planned: Mapping[str, str | None], results: Sequence[Result]) -> Iterator[str]:
    """What was collected and has no result, since the run ended before: no more is known of it anywhere."""
    missing = Counter(planned[nodeid] for nodeid in planned.keys() - {result.nodeid for result in results})
    totals = Counter(planned.values())
    listed = [
        f"{missing[board]} of {totals[board]} tests {f'of {board}' if board else 'about no board'}"
        for board in totals
        if missing[board]
    ]
    if listed:
        yield f"not run: {', '.join(listed)}; the run ended before, and they have no result"
