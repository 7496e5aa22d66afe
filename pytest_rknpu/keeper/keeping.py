"""Taking a place, holding it, giving it back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from pytest_rknpu.keeper.coordinator import Coordinator
from pytest_rknpu.keeper.life import SignOfLife, Undertaker
from pytest_rknpu.keeper.messages import Disconnected, Lost, Refused, Wanted, say

_RETRY_SECONDS = 1.0
_ACQUIRED = 2  # labgrid.remote.common.ReservationState; what is greater has ended
_OWN_NAME = "rknpu"


class Keeping:
    """One place, from the first try to the last word."""

    def __init__(self, coordinator: Coordinator, wanted: Wanted) -> None:
        self._coordinator = coordinator
        self._wanted = wanted
        self._sign = SignOfLife(coordinator)
        self._undertaker = Undertaker(coordinator)
        self._token = ""
        self._place: str | None = None

    def take(self) -> str:
        """The name of the place that is held from now on. Raises Refused, Released, Disconnected."""
        self._refuse_unknown()
        deadline = time.monotonic() + self._wanted.wait_s
        told = False
        while True:
            try:
                reasons = self._round()
                if self._place is not None:
                    return self._place
                if self._wanted.siblings in reasons.replace(self._wanted.own, ""):
                    deadline = time.monotonic() + self._wanted.wait_s
                if time.monotonic() >= deadline:
                    raise Refused("timeout", reasons)
                if not told:
                    say("waiting", holders=reasons)
                    told = True
                self._coordinator.pause(min(_RETRY_SECONDS, deadline - time.monotonic()))
            except Disconnected:
                self._coordinator.reconnect()
                self._sign.show(again=True)

    def service(self) -> dict[str, Any]:
        """By what the place is reached. Raises Refused where that is not clear."""
        services = self._coordinator.services(self._place or "")
        chosen = services.get(_OWN_NAME) or (next(iter(services.values())) if len(services) == 1 else None)
        if chosen is None:
            raise Refused(
                "unclear",
                f"place {self._place} has {len(services)} NetworkServices ({', '.join(sorted(services))}); "
                f"let its match of the right one be named {_OWN_NAME} (labgrid-client add-named-match)",
            )
        values, extra = _plain(chosen.params), _plain(chosen.extra)
        return {
            "address": values["address"],
            "username": values["username"],
            "port": values.get("port", 22),
            "proxy": extra.get("proxy") if extra.get("proxy_required") else None,
        }

    def hold(self) -> None:
        """Until somebody says otherwise. Raises Released, Lost."""
        while True:
            try:
                self._require_held()
                self._sign.show()
                self._coordinator.take_in(self._sign.due)
                if self._coordinator.asked:
                    self._coordinator.settle()
                    self._require_held()
                    self._coordinator.asked = False
                    say("checked")
            except Disconnected as error:
                self._survive(error)

    def give_back(self) -> None:
        """Release what is ours, and nothing that is not."""
        with contextlib.suppress(Disconnected):
            if self._place is not None:
                own = self._coordinator.identity
                self._coordinator.call("ReleasePlace", placename=self._place, fromuser=own)
            if self._token:
                self._coordinator.call("CancelReservation", token=self._token)
            self._sign.remove()

    # -- taking

    def _refuse_unknown(self) -> None:
        there = ", ".join(sorted(self._coordinator.places)) or "none"
        unknown = [name for name in self._wanted.places if name not in self._coordinator.places]
        if unknown:
            raise Refused("unknown", f"it has no place {', '.join(unknown)}; there are: {there}")
        if not self._names():
            tags = " ".join(f"{key}={value}" for key, value in self._wanted.filter.items())
            raise Refused("unknown", f"none of its places has the tags {tags}; there are: {there}")

    def _names(self) -> list[str]:
        return self._wanted.places or self._coordinator.matching(self._wanted.filter)

    def _round(self) -> str:
        """Try each place once; in words why each cannot be had. Raises Disconnected, Refused, Released."""
        self._sign.show()
        reasons = {name: self._coordinator.held_by(name) for name in self._names()}
        for name in self._candidates():
            reasons[name] = self._try(name)
            if self._place is not None:
                break
        else:
            self._undertaker.free(list(reasons))
        return "; ".join(f"place {name} is {reason}" for name, reason in reasons.items())

    def _candidates(self) -> Iterator[str]:
        """The places that were named, or the one that the coordinator has reserved for us."""
        if self._wanted.places:
            yield from self._wanted.places
            return
        answer: Any = "none yet"
        if self._token:
            answer = self._coordinator.call("PollReservation", token=self._token)
        if isinstance(answer, str) or answer.reservation.state > _ACQUIRED:
            reservation = self._coordinator.reserve(self._wanted.filter)
            if isinstance(reservation, str):
                raise Refused("unclear", f"it takes no reservation: {reservation}")
            self._token = reservation.token
        else:
            reservation = answer.reservation
        yield from reservation.allocations.values()

    def _try(self, name: str) -> str:
        """Acquire a place; why that did not work, in words."""
        place = self._coordinator.places.get(name)
        reserved = place is not None and place.reservation
        if place is not None and place.acquired == self._coordinator.identity:
            self._place = name  # the answer to an earlier try was lost on the way
            return "held by us"
        if place is None or place.acquired or (reserved and reserved != self._token):
            return self._coordinator.held_by(name)
        if not self._coordinator.services(name):
            return "without a NetworkService: its exporter is away, or none of its matches fits one"
        answer = self._coordinator.call("AcquirePlace", placename=name)
        if isinstance(answer, str):
            return f"refused: {answer}"
        self._place = name  # from now on it has to be given back
        self._coordinator.settle()
        return "held by us"

    # -- holding

    def _require_held(self) -> None:
        place = self._coordinator.places.get(self._place or "")
        if place is None:
            raise Lost(f"place {self._place} was deleted at the coordinator")
        if place.acquired != self._coordinator.identity:
            now = f"it is held by {place.acquired} now" if place.acquired else "nobody holds it now"
            raise Lost(
                f"place {self._place} was released by somebody else, or its coordinator started anew; {now}"
            )

    def _survive(self, error: Disconnected) -> None:
        try:
            self._coordinator.reconnect()
            self._sign.show(again=True)
        except Disconnected as still:
            raise Lost(f"the coordinator went away ({error}), and did not come back ({still})") from None


def _plain(table: Any) -> dict[str, Any]:
    """A map of protobuf's as a dict; values that are not set are left out."""
    kinds = {key: value.WhichOneof("kind") for key, value in table.items()}
    return {key: getattr(table[key], kind) for key, kind in kinds.items() if kind}
