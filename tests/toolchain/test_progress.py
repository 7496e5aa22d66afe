"""Compiles over a second are told, quick ones are not; shown to people only."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from pytest_rknpu.farm import progress as shown
from pytest_rknpu.toolchain.progress import LOGGER, told_if_slow


def test_a_slow_block_is_told_while_it_runs_and_after(caplog: pytest.LogCaptureFixture) -> None:
    told = threading.Event()

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.set()

    handler = Telling()
    LOGGER.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, LOGGER.name), told_if_slow("compiling", slow_s=0.01):
            assert told.wait(10)
    finally:
        LOGGER.removeHandler(handler)
    first, last = caplog.messages
    assert first == "compiling ..."
    assert last.startswith("compiling took ")


def test_a_quick_block_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER.name), told_if_slow("compiling", slow_s=60):
        pass
    assert caplog.messages == []
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(10)
            assert not thread.is_alive()


class Config:
    """What ``show_compiles`` asks of pytest's configuration."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.cleanups: list[Any] = []

    def get_verbosity(self) -> int:
        return self.verbose

    def add_cleanup(self, function: Any) -> None:
        self.cleanups.append(function)


@pytest.mark.parametrize(
    ("terminal", "verbose", "lines"),
    [(True, 0, ["hello"]), (True, -1, []), (False, 0, []), (True, 1, ["hello"])],
)
def test_it_is_shown_at_a_terminal_without_q(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, verbose: int, lines: list[str]
) -> None:
    heard: list[str] = []
    config, before = Config(verbose), list(LOGGER.handlers)
    monkeypatch.setattr(shown.sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(shown, "announce", lambda _, text: heard.append(text))
    shown.show_compiles(config)  # type: ignore[arg-type]
    try:
        LOGGER.info("hello")
    finally:
        for function in config.cleanups:
            function()
    assert heard == lines
    assert LOGGER.handlers == before
