"""Jobs of several threads at once, which Ctrl-C in the thread that waits for them ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pytest_rknpu.errors import ToolkitError

Item = TypeVar("Item")
Result = TypeVar("Result")


class RunningJobs:
    """How to end each job that runs in this process; while ``stopping`` there is none and none begins."""

    def __init__(self) -> None:
        self.stopping = False
        self._lock = threading.Lock()
        self._ends: dict[object, Callable[[], object]] = {}

    @contextlib.contextmanager
    def one(self, end: Callable[[], object]) -> Iterator[None]:
        """A job that runs in this block, and that ``end`` ends. ToolkitError: it was ended, or did not begin.

        ``end`` may be called after the job has ended by itself.
        """
        token = object()
        with self._lock:
            self._go_on()
            self._ends[token] = end
        try:
            yield
        finally:
            with self._lock:
                del self._ends[token]
        self._go_on()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Ends all jobs, and lets none begin in the block."""
        with self._lock:
            self.stopping = True
            for end in self._ends.values():
                with contextlib.suppress(OSError):
                    end()
        try:
            yield
        finally:
            self.stopping = False

    def _go_on(self) -> None:
        if self.stopping:
            raise ToolkitError("the toolkit's job was ended: another one failed, or Ctrl-C was pressed")


RUNNING = RunningJobs()


def side_by_side(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """``call`` for each item, in a thread per CPU; what they return, in the order of the items.

    The first exception, of a call or of who waits for them (Ctrl-C), ends the jobs of the others.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            return list(pool.map(call, items))
        except BaseException:
            # Else the pool would wait for jobs that may hang to their deadline.
            with RUNNING.stopped():
                pool.shutdown(cancel_futures=True)
            raise
