"""Ways in which a run takes the whole board away: no requirement can be judged then, the outcome is
``infra``.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from dataclasses import replace

from pytest_rknpu.emulator import log
from pytest_rknpu.emulator.breaking import Parameters
from pytest_rknpu.emulator.hooks import Hooks

RUNS = ("0", "10", "100")
"""After how many zero-copy runs of a process it happens."""


def hang(hooks: Hooks, parameters: Parameters) -> Hooks:
    """A run that never returns."""
    runs = itertools.count()

    def start_run() -> None:
        if next(runs) < int(parameters["after"]):
            return
        log.error("failed to wait for the job, emulated: it never ends")
        while True:
            time.sleep(3600)

    return replace(hooks, start_run=start_run)


def crash(hooks: Hooks, parameters: Parameters) -> Hooks:
    """A run within which the library dies."""
    runs = itertools.count()

    def start_run() -> None:
        if next(runs) >= int(parameters["after"]):
            log.error("about to touch what is not mapped, emulated")
            os.kill(os.getpid(), signal.SIGSEGV)

    return replace(hooks, start_run=start_run)
