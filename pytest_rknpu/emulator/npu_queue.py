"""The NPU's job queue: one layer at a time, contexts served in turn."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class NpuQueue:
    """First come, first served. Threads that run contexts at once alternate layer by layer.

    A plain lock would not do: the thread that releases it usually takes it again before a waiting one
    wakes up, so that a whole run would pass undisturbed and contexts that share memory wrongly would seem
    right.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._busy = False
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many jobs wait for the one that runs."""
        return len(self._waiting)

    @contextmanager
    def job(self) -> Iterator[None]:
        """Hold the NPU for one job."""
        turn = self._enter()
        if turn is not None:
            turn.acquire()  # released by the job before
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> threading.Lock | None:
        with self._guard:
            if not self._busy:
                self._busy = True
                return None
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
            return turn

    def _leave(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._busy = False
