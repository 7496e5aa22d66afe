"""Says, through logging, that a compile takes longer than a second: somebody may be waiting for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("pytest_rknpu.toolchain")
SLOW_S = 1.0


@contextmanager
def told_if_slow(subject: str, slow_s: float = SLOW_S) -> Iterator[None]:
    """Logs ``subject`` once the block has taken ``slow_s`` seconds, and then how long it took in all."""
    started = time.monotonic()
    timer = threading.Timer(slow_s, LOGGER.info, (f"{subject} ...",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        took = time.monotonic() - started
        if took >= slow_s:
            timer.join()  # it may be telling; else it ends by itself, for which nobody need wait
            LOGGER.info("%s took %.1f s", subject, took)
