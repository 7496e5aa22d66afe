"""What is registered with pytest in the one process that reports; workers of xdist have none of it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_rknpu.farm.run import Run
from pytest_rknpu.report.collector import Collector
from pytest_rknpu.report.folded_skips import folded_skips
from pytest_rknpu.report.live import NAME, Live, is_wanted


class Folding:
    """Our skips in few lines, where pytest lists them."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around the one in which pytest lists them
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> Generator[None, object, object]:
        """The summary, in which skips are folded."""
        with folded_skips(terminalreporter):
            return (yield)


def register_reporters(run: Run, config: pytest.Config) -> Collector:
    """When pytest is configured, in a run that has boards."""
    collector = Collector(run, config)
    config.pluginmanager.register(collector, "rknpu-collector")
    config.pluginmanager.register(Folding(), "rknpu-folding")
    if config.getoption("htmlpath", None):
        from pytest_rknpu.report.html_report import HtmlReport

        config.pluginmanager.register(HtmlReport(), "rknpu-html")
    return collector


def begin_reporting(collector: Collector, config: pytest.Config) -> None:
    """When the session starts, and before xdist starts its workers.

    Raises UsageError or ConfigurationError where the report cannot be written.
    """
    collector.begin()
    if is_wanted(config):
        config.pluginmanager.register(Live(config, collector.planned, collector.results), NAME)
