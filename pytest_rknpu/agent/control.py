"""Steps that run other steps: ``repeat`` and ``threads``."""

from __future__ import annotations

import threading
import time
from typing import Any

from .compiler import Body, Compiler, Step, run_body
from .failures import DeadlineFailure, Failure, located

LOG_PERIOD = 256
"""Iterations between two looks at the log, which keep its unread part small."""


def build_repeat(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Run the commands ``count`` times; a failure's path is [.., iteration, index of the command]."""
    count = arguments["count"]
    body = compiler.body(arguments["commands"], repeated=True, rounds=count)
    rounds = range(count if body else 0)
    pump, ends, clock = compiler.services.pump_log, compiler.services.ends, time.monotonic

    def repeat_step(iteration: int) -> None:
        number = index = 0
        try:
            for number in rounds:
                if clock() > ends:
                    raise DeadlineFailure(f"repeat: out of time after {number} of {count} iterations")
                for index, inner in body:  # noqa: B007 - the handler below tells where
                    inner(number)
                if number % LOG_PERIOD == LOG_PERIOD - 1:
                    pump()
        except Exception as error:
            raise located(error, number, index) from error

    return repeat_step


def build_threads(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Run each command list in a thread of its own; all start together behind a barrier.

    A failure's path is [.., group, index of the command]; where several fail, the first group's failure is
    told.
    """
    groups = []
    for number, commands in enumerate(arguments["groups"]):
        try:
            groups.append(compiler.body(commands))
        except Exception as error:
            raise located(error, number) from error

    def threads_step(iteration: int) -> None:
        failures: dict[int, Failure] = {}
        barrier = threading.Barrier(len(groups))
        threads: list[threading.Thread] = []
        try:
            for number, body in enumerate(groups):
                thread = threading.Thread(
                    target=_run_group, args=(number, body, iteration, barrier, failures), daemon=True
                )
                thread.start()
                threads.append(thread)
        except RuntimeError:  # no more threads to be had: let those that wait go, then tell
            barrier.abort()
            raise
        finally:
            for thread in threads:
                thread.join()
        if failures:
            raise failures[min(failures)]

    return threads_step


def _run_group(
    number: int, body: Body, iteration: int, barrier: threading.Barrier, failures: dict[int, Failure]
) -> None:
    try:
        barrier.wait()
        run_body(body, iteration)
    except threading.BrokenBarrierError:
        pass  # the thread that could not start is told by the caller
    except Exception as error:
        failures[number] = located(error, number)
