"""What the coordinator knows, kept up to date: its places and their resources."""

from __future__ import annotations

import contextlib
import queue
import time
from typing import Any

from pytest_rknpu.keeper.connection import Connection
from pytest_rknpu.keeper.messages import Disconnected, Released
from pytest_rknpu.keeper.parent import Inbox

_ANSWER_SECONDS = 15.0
_AWAY_SECONDS = 20.0
_RETRY_SECONDS = 1.0


class Coordinator:
    """A view of the coordinator by one connection, which `reconnect` replaces.

    ``places`` holds its Place messages by name; ``asked`` is set when the parent wants to know whether a
    place is still held.
    """

    def __init__(self, address: str, identity: str, inbox: Inbox) -> None:
        self.identity = identity
        self.places: dict[str, Any] = {}
        self.asked = False
        self._address = address
        self._inbox = inbox
        self._resources: dict[tuple[str, str, str], Any] = {}
        self._connection = Connection(address, identity, inbox)

    def settle(self, seconds: float = _ANSWER_SECONDS) -> None:
        """Take in everything that has happened by now. Raises Disconnected, Released."""
        deadline = time.monotonic() + seconds
        number = self._connection.sync()
        while self.take_in(deadline) != ("synced", (self._connection, number)):
            if time.monotonic() >= deadline:
                raise Disconnected("it does not answer")

    def pause(self, seconds: float) -> None:
        """Take in what happens meanwhile. Raises Disconnected, Released."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.take_in(deadline)

    def take_in(self, deadline: float) -> tuple[str, Any] | None:
        """The next thing that happens, or None at the deadline (`time.monotonic`).

        Raises Released, and Disconnected where it is the connection in use that ended.
        """
        try:
            kind, value = self._inbox.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None
        if kind == "released":
            raise Released(value)
        if kind == "disconnected" and value[0] is self._connection:
            raise Disconnected(value[1])
        if kind == "check":
            self.asked = True
        if kind == "update":
            self._update(value)
        return kind, value

    def reconnect(self) -> None:
        """Connect anew: after a moment's absence it knows who holds what. Raises Disconnected, Released."""
        deadline = time.monotonic() + _AWAY_SECONDS
        while True:
            self._connection.close()
            self.places.clear()
            self._resources.clear()
            self._connection = Connection(self._address, self.identity, self._inbox)
            try:
                return self.settle(max(1.0, deadline - time.monotonic()))
            except Disconnected:
                if time.monotonic() >= deadline:
                    raise
            with contextlib.suppress(Disconnected):
                self.pause(_RETRY_SECONDS)

    def call(self, name: str, **values: Any) -> Any:
        """See `Connection.call`."""
        return self._connection.call(name, **values)

    def reserve(self, tags: dict[str, str]) -> Any:
        """A new reservation of a place with these tags; a text where that is refused."""
        filters = {"main": self._connection.messages.Reservation.Filter(filter=tags)}
        answer = self.call("CreateReservation", filters=filters)
        return answer if isinstance(answer, str) else answer.reservation

    def matching(self, tags: dict[str, str]) -> list[str]:
        """The places that have these tags. As for labgrid, the name of a place is one of its tags."""
        return [
            name
            for name, place in sorted(self.places.items())
            if tags.items() <= {"name": name, **place.tags}.items()
        ]

    def held_by(self, name: str) -> str:
        """Why the place cannot be had by others, in words."""
        place = self.places.get(name)
        if place is None:
            return "deleted"
        if place.acquired:
            return f"held by {place.acquired}"
        return f"reserved by another (token {place.reservation})" if place.reservation else "free by now"

    def services(self, name: str) -> dict[str, Any]:
        """The place's NetworkService resources that are there, by the name that its match gives them."""
        from labgrid.remote.common import Place

        place = Place.from_pb2(self.places[name])
        found = {}
        for (exporter, group, own_name), resource in self._resources.items():
            match = place.getmatch((exporter, group, resource.cls, own_name))
            if match is not None and resource.cls == "NetworkService" and resource.avail:
                found[match.rename or own_name] = resource
        return found

    def _update(self, update: Any) -> None:
        kind = update.WhichOneof("kind")
        if kind == "place":
            self.places[update.place.name] = update.place
        elif kind == "del_place":
            self.places.pop(update.del_place, None)
        elif kind == "resource":
            self._resources[_key(update.resource.path)] = update.resource
        elif kind == "del_resource":
            self._resources.pop(_key(update.del_resource), None)


def _key(path: Any) -> tuple[str, str, str]:
    return path.exporter_name, path.group_name, path.resource_name
