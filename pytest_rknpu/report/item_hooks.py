"""pytest's hooks around a single test, registered once there are tests of ours in a run.

In a run without any they would cost a few microseconds for each phase of each test.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_rknpu.farm.collecting import OURS
from pytest_rknpu.farm.finishing import before_test, finishing
from pytest_rknpu.farm.slots import SLOTS
from pytest_rknpu.report.phases import judge


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the SoC cannot do; see that the board is alive."""
    ours = item.stash.get(OURS, None)
    if ours is not None:
        ours.begin()
        before_test(ours, item.config.stash[SLOTS])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Clean up on the board and judge the runtime's log, still within the call."""
    ours = item.stash.get(OURS, None)
    if ours is None:
        return (yield)
    with finishing(item, ours, item.config.stash[SLOTS]):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost: it has the last word
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn what happened into an outcome."""
    report = yield
    ours = item.stash.get(OURS, None)
    if ours is not None:
        judge(item, ours, call, report, item.config.stash[SLOTS])
        if report.when == "teardown" and item.config.pluginmanager.has_plugin("allure_listener"):
            from pytest_rknpu.report.allure_report import tell_allure

            tell_allure(item.config, report)
    return report
