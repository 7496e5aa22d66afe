"""Shows people at a terminal what the toolchain says of compiles that take a while."""

from __future__ import annotations

import logging
import sys

import pytest

from pytest_rknpu.farm.announce import announce

_LOGGER = "pytest_rknpu.toolchain"


class _Announcing(logging.Handler):
    """A line at the terminal for each record; ``handle`` lets one thread at a time in."""

    def __init__(self, config: pytest.Config) -> None:
        super().__init__(logging.INFO)
        self._config = config

    def emit(self, record: logging.LogRecord) -> None:
        announce(self._config, record.getMessage())


def show_compiles(config: pytest.Config) -> None:
    """From now to the end of the run, where somebody is looking: a terminal, and no -q."""
    if config.get_verbosity() < 0 or not sys.stderr.isatty():
        return
    logger, handler = logging.getLogger(_LOGGER), _Announcing(config)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)

    def stop() -> None:
        logger.removeHandler(handler)
        logger.setLevel(level)

    config.add_cleanup(stop)
