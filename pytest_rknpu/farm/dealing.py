"""Which tests a worker gets next: a pure decision, without pytest, xdist or a clock.

Tests are dealt from *stations*. A station is what has to be leased for them: a machine, which takes a worker
at a time, or a pool of equal boards, which takes as many as it has boards. Tests that need no board come in
stations of their own.

The longest work goes first (Graham's LPT rule), in two senses: a free worker goes to the station where most
seconds are left for each worker, and in a pool the longest test is dealt next. A pool is dealt in shares that
shrink with what is left of it, so that its workers end at about the same time even where the expected
durations are wrong. Whoever is at a station stays there while there is work: to change it means to open
another board.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

OPENING_SECONDS = 3.0
"""What it costs to open one more board of a pool: nobody joins for less work than that."""

_SHARES_PER_WORKER = 8


@dataclass(frozen=True)
class Job:
    """One test, and how many seconds it is expected to take."""

    item: str
    seconds: float


class Dealer:
    """Deals ``jobs``, which are by station in the order of their collection.

    ``places`` is how many workers a station takes at once; 1 where it is not named.
    """

    def __init__(
        self, jobs: Mapping[str, Sequence[Job]], places: Mapping[str, int], opening_s: float = OPENING_SECONDS
    ) -> None:
        self._places = {station: max(1, places.get(station, 1)) for station in jobs}
        self._opening_s = opening_s
        self._jobs = {station: deque(self._ordered(station, own)) for station, own in jobs.items() if own}
        self._seconds = {station: sum(job.seconds for job in own) for station, own in self._jobs.items()}
        self._at: dict[Hashable, str] = {}
        self._workers_at: Counter[str] = Counter()

    @property
    def left(self) -> bool:
        """Whether anything is still to be dealt."""
        return bool(self._jobs)

    def deal(self, worker: Hashable, workers: int, in_hand_s: float = 0.0) -> tuple[str, list[Job]] | None:
        """The next tests of ``worker``, one of ``workers``, with their station. None: it has no more use.

        That is so where nothing is left, and where all that is left belongs to stations with workers enough.
        ``in_hand_s`` is how much the worker still has to do: who has much, and asks because xdist's workers
        begin a test only when they know the next one, gets a short one of a pool.
        """
        station = self._at.get(worker)
        if station not in self._jobs:
            self._leave(worker)
            station = self._best()
            if station is None:
                return None
            self._at[worker] = station
            self._workers_at[station] += 1
        return station, self._share(station, workers, in_hand_s)

    def take_back(self, worker: Hashable, jobs: Mapping[str, Iterable[Job]]) -> None:
        """The worker has gone; ``jobs`` is what it had been dealt and did not begin, by station."""
        self._leave(worker)
        for station, own in jobs.items():
            for job in own:
                self._jobs.setdefault(station, deque()).append(job)
                self._seconds[station] = self._seconds.get(station, 0.0) + job.seconds

    def _ordered(self, station: str, jobs: Sequence[Job]) -> list[Job]:
        """The longest first in a pool. Where there is one worker anyway, tests keep their order."""
        if self._places[station] == 1:
            return list(jobs)
        return sorted(jobs, key=lambda job: -job.seconds)

    def _best(self) -> str | None:
        """The open station with most seconds left per worker, counting the one who joins."""
        each = {name: self._seconds[name] / (self._workers_at[name] + 1) for name in self._open()}
        return max(each, key=each.__getitem__, default=None)

    def _open(self) -> Iterable[str]:
        for station in self._jobs:
            there = self._workers_at[station]
            worth_it = there == 0 or self._seconds[station] / (there + 1) > self._opening_s
            if there < self._places[station] and worth_it:
                yield station

    def _share(self, station: str, workers: int, in_hand_s: float) -> list[Job]:
        jobs, places = self._jobs[station], self._places[station]
        if places == 1:
            share = list(jobs)
            jobs.clear()
        else:
            each = self._seconds[station] / min(places, max(1, workers))
            share = [jobs.pop()] if in_hand_s > each else _taken(jobs, each / _SHARES_PER_WORKER)
        self._seconds[station] -= sum(job.seconds for job in share)
        if not jobs:
            del self._jobs[station], self._seconds[station]
        return share

    def _leave(self, worker: Hashable) -> None:
        station = self._at.pop(worker, None)
        if station is not None:
            self._workers_at[station] -= 1


def _taken(jobs: deque[Job], wanted_s: float) -> list[Job]:
    """The first of the jobs, and more up to that many seconds."""
    share = [jobs.popleft()]
    seconds = share[0].seconds
    while jobs and seconds + jobs[0].seconds <= wanted_s:
        seconds += jobs[0].seconds
        share.append(jobs.popleft())
    return share
