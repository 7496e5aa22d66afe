"""Signs of life: how a holder says that it is there, and how others find that it is not.

A sign is a reservation by the holder's identity for a tag that no place has. The coordinator drops it when
nobody has asked for it for 60 s (labgrid/remote/common.py, Reservation), looking every 15 s.
"""

from __future__ import annotations

import time

from pytest_rknpu.keeper.coordinator import Coordinator
from pytest_rknpu.keeper.messages import Refused

MARK = ".rknpu."
"""In the user part of an identity that keeps a sign of life."""

_TAG = "rknpu_lease"
_BEAT_SECONDS = 15.0
# So long a sign has to be missing: a holder that comes back may be about to renew it.
_MISSING_SECONDS = 5.0
_WAITING = 0  # labgrid.remote.common.ReservationState


class SignOfLife:
    """The own one."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._token = ""
        self.due = time.monotonic()

    def show(self, *, again: bool = False) -> None:
        """When it is due, or ``again`` after a reconnect.

        Raises Disconnected, and Refused where it cannot be shown: others would take the holder for dead.
        """
        if time.monotonic() < self.due and not again:
            return
        if not self._renewed():
            made = self._coordinator.reserve({_TAG: "held"})
            if isinstance(made, str):
                raise Refused("unclear", f"it takes no reservation as a sign of life: {made}")
            self._token = made.token
        self.due = time.monotonic() + _BEAT_SECONDS

    def remove(self) -> None:
        """Raises Disconnected."""
        if self._token:
            self._coordinator.call("CancelReservation", token=self._token)

    def _renewed(self) -> bool:
        answer = self._coordinator.call("PollReservation", token=self._token) if self._token else "none yet"
        return not isinstance(answer, str) and answer.reservation.state == _WAITING


class Undertaker:
    """Gives back what the dead hold."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._missing_since: dict[tuple[str, str], float] = {}

    def free(self, names: list[str]) -> None:
        """Those of the places whose holder should show a sign of life, and has shown none for a while.

        Holders that are no keepers, people with labgrid-client say, are left alone. Raises Disconnected.
        """
        places = self._coordinator.places
        held = {(name, places[name].acquired) for name in names if name in places}
        keepers = {(name, who) for name, who in held if MARK in who and who != self._coordinator.identity}
        if not keepers:
            return
        answer = self._coordinator.call("GetReservations")
        alive = {each.owner for each in answer.reservations if each.state == _WAITING and _is_sign(each)}
        now = time.monotonic()
        missing = {pair for pair in keepers if pair[1] not in alive}
        self._missing_since = {pair: self._missing_since.get(pair, now) for pair in missing}
        for (name, who), since in self._missing_since.items():
            if now - since >= _MISSING_SECONDS:
                # What it holds by a reservation would be kept for it for another minute.
                for each in answer.reservations:
                    if each.owner == who and name in each.allocations.values():
                        self._coordinator.call("CancelReservation", token=each.token)
                self._coordinator.call("ReleasePlace", placename=name, fromuser=who)


def _is_sign(reservation: object) -> bool:
    return _TAG in reservation.filters["main"].filter  # type: ignore[attr-defined]  # a message of protobuf
