"""pytest's hooks around the phases of a test: a board that was lost in one is looked at before it ends.

Registered beside `item_hooks`, whose hooks have another place in the order.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_rknpu.farm.collecting import OURS
from pytest_rknpu.farm.finishing import explaining
from pytest_rknpu.farm.slots import SLOTS
from pytest_rknpu.report.not_tried import uncount


def _explained(item: pytest.Item) -> Generator[None, object, object]:
    ours = item.stash.get(OURS, None)
    if ours is None or ours.board is None:
        return (yield)
    with explaining(ours, item.config.stash[SLOTS].of(ours.board.name)):
        return (yield)


@pytest.hookimpl(tryfirst=True)  # before pytest-rerunfailures asks how often
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """What a board in quarantine does not get is not asked for again and again, with delays in between."""
    ours = item.stash.get(OURS, None)
    if ours is None or ours.board is None or not item.config.pluginmanager.has_plugin("rerunfailures"):
        return
    if item.config.stash[SLOTS].of(ours.board.name).given_up:
        item.add_marker(pytest.mark.flaky(reruns=0), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures may lose the board."""
    return (yield from _explained(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around the clean-up of the board, which may lose it too
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """So may the test."""
    return (yield from _explained(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """And what cleans up after it."""
    return (yield from _explained(item))


class Counting:
    """A plugin that sees each report before pytest counts it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, object, object]:
        """Tests that were not tried are no failures to be counted."""
        uncount(self._config, report)
        return (yield)
