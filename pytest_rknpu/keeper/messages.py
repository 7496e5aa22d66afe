"""What keeper and parent tell each other, and what can happen to a place."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any, Literal

Refusal = Literal["timeout", "unknown", "unclear", "coordinator", "labgrid", "broken"]


@dataclass(frozen=True)
class Wanted:
    """``address`` of the coordinator (host:port), ``identity`` (host/user), and either places or tags.

    ``own`` is in the identities of the process that asks, ``siblings`` in those of all processes of its run:
    the ``wait_s`` seconds do not count while another of them holds a place, since it will be done.
    """

    address: str
    identity: str
    own: str
    siblings: str
    places: list[str]
    filter: dict[str, str]
    wait_s: float


class Refused(Exception):
    """No place can be had."""

    def __init__(self, why: Refusal, message: str) -> None:
        super().__init__(message)
        self.why = why


class Lost(Exception):
    """The place that was held is held no longer."""


class Released(Exception):
    """Nobody needs the place any more; ``abruptly``: the holder was killed, or this process is to end."""

    def __init__(self, abruptly: bool) -> None:
        super().__init__()
        self.abruptly = abruptly


class Disconnected(Exception):
    """The coordinator ended the connection, or does not answer."""


def say(event: str, **values: Any) -> None:
    """Tell the parent, if it is still there."""
    with contextlib.suppress(OSError):
        print(json.dumps({"event": event, **values}), flush=True)
