"""One stream from a labgrid coordinator, and calls to it (labgrid/remote/proto/labgrid-coordinator.proto)."""

from __future__ import annotations

import queue
import threading
from typing import Any

from pytest_rknpu.keeper.messages import Disconnected
from pytest_rknpu.keeper.parent import Inbox

# The coordinator itself gives an exporter ten seconds to hand a resource over.
_CALL_SECONDS = 20.0
_OPTIONS = [
    ("grpc.keepalive_time_ms", 7500),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.http2.ping_timeout_ms", 10000),
    ("grpc.http2.max_pings_without_data", 0),
    # The coordinator takes one stream of each connection, and a new channel must not inherit one that ended.
    ("grpc.use_local_subchannel_pool", 1),
]


class Connection:
    """Subscribed to all places and resources.

    What the stream says goes to ``inbox``: ``("update", message)``, ``("synced", (self, number))`` and, last,
    ``("disconnected", (self, why))``.
    """

    def __init__(self, address: str, identity: str, inbox: Inbox) -> None:
        import grpc
        from labgrid.remote.generated import labgrid_coordinator_pb2, labgrid_coordinator_pb2_grpc
        from labgrid.util import labgrid_version
        from labgrid.util.proxy import proxymanager

        self.messages: Any = labgrid_coordinator_pb2
        self._grpc: Any = grpc
        self._inbox = inbox
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._syncs = 0
        # $LG_PROXY, which labgrid's own client honours, makes an ssh tunnel of it.
        target = proxymanager.get_grpc_address(address, default_port=20408)
        self._channel = grpc.insecure_channel(target, options=_OPTIONS)
        self._stub = labgrid_coordinator_pb2_grpc.CoordinatorStub(self._channel)
        self._send(startup=self.messages.StartupDone(version=labgrid_version(), name=identity))
        self._send(subscribe=self.messages.Subscribe(all_places=True))
        self._send(subscribe=self.messages.Subscribe(all_resources=True))
        self._stream = self._stub.ClientStream(iter(self._outbox.get, None))
        threading.Thread(target=self._read, daemon=True).start()

    def sync(self) -> int:
        """Ask for an answer with the number returned; what has happened by now is told before it."""
        self._syncs += 1
        self._send(sync=self.messages.Sync(id=self._syncs))
        return self._syncs

    def call(self, name: str, **values: Any) -> Any:
        """Call ``name`` of the coordinator: its answer, or a text with its reason where it refuses.

        Raises Disconnected.
        """
        request = getattr(self.messages, f"{name}Request")(**values)
        try:
            return getattr(self._stub, name)(request, timeout=_CALL_SECONDS)
        except self._grpc.RpcError as error:
            code = self._grpc.StatusCode
            if error.code() in (code.UNAVAILABLE, code.DEADLINE_EXCEEDED, code.CANCELLED):
                raise Disconnected(f"{name}: {error.details()}") from None
            return str(error.details())

    def close(self) -> None:
        """End the stream; safe to call twice."""
        self._outbox.put(None)
        self._stream.cancel()
        self._channel.close()

    def _send(self, **kind: Any) -> None:
        self._outbox.put(self.messages.ClientInMessage(**kind))

    def _read(self) -> None:
        why = "it closed the connection"
        try:
            for message in self._stream:
                for update in message.updates:
                    self._inbox.put(("update", update))
                if message.HasField("sync"):
                    self._inbox.put(("synced", (self, message.sync.id)))
        except self._grpc.RpcError as error:
            why = str(error.details())
        self._inbox.put(("disconnected", (self, why)))
