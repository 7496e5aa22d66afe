"""Plays whole runs through the dealer, without tests, boards or a clock; prints makespans against the least.

    python benchmarks/dealt_runs.py

A worker asks for more when it has one test in hand, as xdist's must, and takes a few seconds to open a board.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_rknpu.farm.dealing import OPENING_SECONDS, Dealer, Job

Seconds = Callable[[str], float]
_DEATH = 0.05


@dataclass
class Played:
    """What came of a run: its length in seconds, the tests in order, the most workers at each station."""

    makespan: float = 0.0
    order: list[str] = field(default_factory=list)
    most_at: dict[str, int] = field(default_factory=dict)


@dataclass
class _Worker:
    number: int
    free_at: float = 0.0
    station: str | None = None
    hand: deque[tuple[str, Job]] = field(default_factory=deque)
    finished: bool = False


def play(
    work: Mapping[str, Sequence[Job]],
    places: Mapping[str, int],
    workers: int,
    seconds: Seconds,
    *,
    opening_s: float = OPENING_SECONDS,
    in_hand: int = 1,
    deaths: bool = False,
    dice: random.Random | None = None,
) -> Played:
    """One run with that many workers; ``seconds`` is how long each test really takes.

    With ``deaths`` a worker may end after a test; another one takes its place. Boards that a worker has left
    are free for others at once.
    """
    dealer = Dealer(work, places, opening_s)
    played, at = Played(), Counter[str]()
    numbers = itertools.count()
    team = [_Worker(next(numbers)) for _ in range(workers)]
    for worker in team:
        _deal(dealer, worker, workers, in_hand=0)
    queue = [(0.0, worker.number, worker) for worker in team]
    heapq.heapify(queue)
    while queue:
        now, _, worker = heapq.heappop(queue)
        _deal(dealer, worker, workers, in_hand)
        if not worker.hand:
            at[worker.station or ""] -= 1
            continue
        station, job = worker.hand.popleft()
        if station != worker.station:
            at[worker.station or ""] -= 1
            at[station] += 1
            played.most_at[station] = max(played.most_at.get(station, 0), at[station])
            now += opening_s
            worker.station = station
        end = now + seconds(job.item)
        played.order.append(job.item)
        played.makespan = max(played.makespan, end)
        if deaths and dice is not None and dice.random() < _DEATH:
            at[station] -= 1
            worker = _replaced(dealer, worker, next(numbers))
        heapq.heappush(queue, (end, worker.number, worker))
    assert not dealer.left
    return played


def _deal(dealer: Dealer, worker: _Worker, workers: int, in_hand: int) -> None:
    while not worker.finished and len(worker.hand) <= in_hand:
        in_hand_s = sum(job.seconds for _, job in worker.hand)
        dealt = dealer.deal(worker.number, workers, in_hand_s)
        if dealt is None:
            worker.finished = True
            return
        worker.hand.extend((dealt[0], job) for job in dealt[1])


def _replaced(dealer: Dealer, worker: _Worker, number: int) -> _Worker:
    undone: dict[str, list[Job]] = {}
    for station, job in worker.hand:
        undone.setdefault(station, []).append(job)
    dealer.take_back(worker.number, undone)
    return _Worker(number)


def lower_bound(
    work: Mapping[str, Sequence[Job]],
    places: Mapping[str, int],
    workers: int,
    seconds: Seconds,
    *,
    opening_s: float = OPENING_SECONDS,
) -> float:
    """No schedule is shorter: by the longest test, by each station's work, and by all work."""
    taken = {name: [seconds(job.item) for job in own] for name, own in work.items() if own}
    if not taken:
        return 0.0
    longest = max(max(own) for own in taken.values())
    stations = max(sum(own) / min(workers, places.get(name, 1)) for name, own in taken.items())
    openings = max(0, len(taken) - workers) / workers * opening_s
    everything = sum(map(sum, taken.values())) / workers + openings
    return max(longest, stations, everything) + opening_s


def farm(
    boards: int, tests: int, pools: int, dice: random.Random
) -> tuple[dict[str, list[Job]], dict[str, int]]:
    """Tests of lognormal length (median 2 s, a few of minutes), in pools of different sizes."""
    sizes = [boards // pools + (number < boards % pools) for number in range(pools)]
    work, places, numbers = {}, {}, itertools.count()
    for number, size in enumerate(sizes):
        name = f"pool{number}"
        own = [
            Job(f"{name}-{next(numbers)}", dice.lognormvariate(math.log(2.0), 1.2))
            for _ in range(tests // pools)
        ]
        work[name], places[name] = own, size
    return work, places


def report(
    title: str, work: dict[str, list[Job]], places: dict[str, int], workers: int, error: float
) -> None:
    """Play one farm and print its makespan; ``error`` is how far the expected durations are off."""
    dice = random.Random(2)
    actual = {job.item: job.seconds for own in work.values() for job in own}
    expected = {
        name: [Job(job.item, job.seconds * dice.lognormvariate(0.0, error)) for job in own]
        for name, own in work.items()
    }
    if math.isinf(error):
        expected = {name: [Job(job.item, 1.0) for job in own] for name, own in work.items()}
    begin = time.perf_counter()
    played = play(expected, places, workers, actual.__getitem__)
    took = time.perf_counter() - begin
    least = lower_bound(work, places, workers, actual.__getitem__)
    print(
        f"{title:62} makespan {played.makespan:8.1f} s, at least {least:8.1f} s: "
        f"{played.makespan / least:5.3f} times   (decided in {took:.2f} s)"
    )


def main() -> None:
    """A thousand boards and fifty thousand tests."""
    dice = random.Random(1)
    work, places = farm(1000, 50_000, 20, dice)
    for error, words in ((0.0, "known"), (0.5, "known within half"), (math.inf, "unknown")):
        report(f"20 pools of 50 boards, 1000 workers, durations {words}", work, places, 1000, error)
    report("the same, 200 workers, durations known within half", work, places, 200, 0.5)
    work, places = farm(1000, 50_000, 1, dice)
    report("one pool of 1000 boards, 1000 workers, known within half", work, places, 1000, 0.5)
    work, places = farm(1000, 50_000, 1000, dice)
    report("1000 boards that nobody stands for, 1000 workers", work, places, 1000, 0.5)
    report("the same, 100 workers", work, places, 100, 0.5)


if __name__ == "__main__":
    main()
