"""Somebody else at a labgrid coordinator, quicker than labgrid-client, which takes a second to start.

Runs in labgrid's Python: a line on stdin is a word and its arguments, one on stdout the answer as JSON.
"""

from __future__ import annotations

import json
import queue
import sys

sys.path.pop(0)  # tests, where a folder is called labgrid too

import grpc
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb2
from labgrid.remote.generated.labgrid_coordinator_pb2_grpc import CoordinatorStub


class Console:
    """One connection, made anew where the last one ended."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connect()

    def _connect(self) -> None:
        self.stub = CoordinatorStub(
            grpc.insecure_channel(self._address, [("grpc.use_local_subchannel_pool", 1)])
        )
        outbox: queue.SimpleQueue[pb2.ClientInMessage | None] = queue.SimpleQueue()
        outbox.put(pb2.ClientInMessage(startup=pb2.StartupDone(version="0", name="elsewhere/somebody")))
        outbox.put(pb2.ClientInMessage(sync=pb2.Sync(id=1)))
        self._stream = self.stub.ClientStream(iter(outbox.get, None))
        next(self._stream)

    def answer(self, word: str, *arguments: str) -> object:
        try:
            return getattr(self, word)(*arguments)
        except grpc.RpcError as error:
            anew = (
                error.code() == grpc.StatusCode.UNAVAILABLE or "not have a valid session" in error.details()
            )
            if not anew:
                return {"refused": error.details()}
            self._connect()  # the coordinator was started again
            return getattr(self, word)(*arguments)

    def who(self) -> dict[str, str]:
        places = self.stub.GetPlaces(pb2.GetPlacesRequest()).places
        return {place.name: place.acquired for place in places if place.acquired}

    def acquire(self, place: str) -> None:
        self.stub.AcquirePlace(pb2.AcquirePlaceRequest(placename=place))

    def release(self, place: str) -> None:
        self.stub.ReleasePlace(pb2.ReleasePlaceRequest(placename=place))

    def reservations(self) -> dict[str, str]:
        found = self.stub.GetReservations(pb2.GetReservationsRequest()).reservations
        return {each.token: each.owner for each in found}

    def cancel(self, token: str) -> None:
        self.stub.CancelReservation(pb2.CancelReservationRequest(token=token))


def main() -> None:
    console = None
    for line in sys.stdin:
        console = console or Console(sys.argv[1])
        print(json.dumps(console.answer(*line.split())), flush=True)


main()
