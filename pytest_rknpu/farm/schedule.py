"""pytest-xdist: tests of one machine on one worker, those of equal boards shared out, node ids as they are.

What a worker gets is decided by `dealing`; here that becomes xdist's business. A station there is what is
leased for a test: a machine (two entries of boards.toml for one host are two boards and one machine), a pool
of equal boards, or, where a test needs no board, its file.

Imported only where xdist distributes a run with boards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from pytest_rknpu.farm.dealing import Dealer, Job

StationOf = Callable[[str], "str | None"]
"""Names what has to be leased for the test with that node id, or None."""

SecondsOf = Callable[[str], float]
"""How long the test with that node id is expected to take."""

# xdist's workers begin a test when they know the one after it, or that there is none.
_KEPT_IN_HAND = 2


def board_in(nodeid: str, names: Collection[str]) -> str | None:
    """The longest of ``names`` that begins the node id's bracket: ``test_x[rk3588-64]`` is about rk3588."""
    _, _, inside = nodeid.partition("::")[2].partition("[")
    inside = inside.removesuffix("]")
    beginning = [name for name in names if inside == name or inside.startswith(f"{name}-")]
    return max(beginning, key=len, default=None)


def scope_of(nodeid: str, station: str | None) -> str:
    """The station of a test, or else its file.

    A station's name cannot be mistaken for a file's, which has no ``::``.
    """
    return f"station::{station}" if station else nodeid.partition("::")[0]


class BoardScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed for subclassing
    """Deals by station. A test that takes its worker down is not tried on the next one.

    ``places``, asked for when there are tests of boards, is how many each station has; 1 where it is not
    named. What the base class does is to keep the collections and to compare them.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: Producer,
        station_of: StationOf,
        places: Callable[[], Mapping[str, int]] = dict,
        seconds_of: SecondsOf = lambda _: 1.0,
    ) -> None:
        super().__init__(config, log)
        self._station_of = station_of
        self._places = places
        self._seconds_of = seconds_of
        self._dealer = Dealer({}, {})
        self._number: dict[str, int] = {}
        self._in_hand: dict[WorkerController, dict[str, tuple[str, Job]]] = {}

    @property
    def tests_finished(self) -> bool:
        """Whether every worker has no more than the test that it is waiting with."""
        if not self.collection_is_completed or self._dealer.left:
            return False
        return all(len(tests) < _KEPT_IN_HAND for tests in self._in_hand.values())

    @property
    def has_pending(self) -> bool:
        """Whether any test is still to be run."""
        return self._dealer.left or any(self._in_hand.values())

    def add_node(self, node: WorkerController) -> None:
        """See the base class."""
        super().add_node(node)
        self._in_hand[node] = {}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """See the base class."""
        self._in_hand[node].pop(self.registered_collections[node][item_index], None)
        self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """The worker ended; returns the test that took it down, or None where it had nothing to do."""
        del self.assigned_work[node]
        hand = self._in_hand.pop(node)
        culprit = next(iter(hand), None)
        undone: dict[str, list[Job]] = {}
        for nodeid, (station, job) in hand.items():
            if nodeid != culprit:
                undone.setdefault(station, []).append(job)
        self._dealer.take_back(node, undone)
        for other in self.nodes:
            self._reschedule(other)
        return culprit

    def schedule(self) -> None:
        """Deal out what was collected; called again for each worker that comes in place of another."""
        assert self.collection_is_completed
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                self.log("**Different tests collected, aborting run**")
                return
            self._begin(list(next(iter(self.registered_collections.values()))))
        for node in self.nodes:  # one share for each before anybody gets a second
            if not self._in_hand[node]:
                self._deal(node)
        for node in self.nodes:
            self._reschedule(node)

    def _begin(self, collection: list[str]) -> None:
        self.collection = collection
        self._number = {nodeid: number for number, nodeid in enumerate(collection)}
        jobs: dict[str, list[Job]] = {}
        needs_board = False
        for nodeid in collection:
            station = self._station_of(nodeid)
            needs_board = needs_board or station is not None
            jobs.setdefault(scope_of(nodeid, station), []).append(Job(nodeid, self._seconds_of(nodeid)))
        places = self._places() if needs_board else {}
        self._dealer = Dealer(jobs, {scope_of("", station): count for station, count in places.items()})

    def _reschedule(self, node: WorkerController) -> None:
        """Give the worker more if it would have to wait; end it where there is nothing for it."""
        while len(self._in_hand[node]) < _KEPT_IN_HAND and self._deal(node):
            pass

    def _deal(self, node: WorkerController) -> bool:
        """One share for the worker; False, and its end, where there is none."""
        if node.shutting_down or node not in self.registered_collections:
            return False
        in_hand_s = sum(job.seconds for _, job in self._in_hand[node].values())
        dealt = self._dealer.deal(node, len(self.nodes), in_hand_s)
        if dealt is None:
            node.shutdown()
            return False
        station, jobs = dealt
        self._in_hand[node].update({job.item: (station, job) for job in jobs})
        node.send_runtest_some([self._number[job.item] for job in jobs])
        return True
