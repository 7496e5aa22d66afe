"""What can go wrong in the agent, as one exception class per kind of the contract (docs/command-lists.md)."""

from __future__ import annotations

import traceback
from typing import Any

from .constants import code_name


class Failure(Exception):
    """Base. ``at`` is the path of command indexes; it grows from the inside out while the exception rises."""

    kind = "internal"
    call: str | None = None
    code: int | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.at: list[int] = []

    def as_reply(self) -> dict[str, Any]:
        """The ``error`` of a reply: plain data, all keys always there."""
        return {
            "kind": self.kind,
            "message": str(self),
            "at": list(self.at),
            "call": self.call,
            "code": self.code,
            "code_name": None if self.code is None else code_name(self.code),
        }


class ProgramFailure(Failure):
    """The list or request is malformed: unknown operation, key or name, wrong type, out of range."""

    kind = "program"


class RknnFailure(Failure):
    """A call returned a code that the command did not expect."""

    kind = "rknn"

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call} returned {code} ({code_name(code)})")
        self.call = call
        self.code = code


class NullFailure(Failure):
    """A call that creates memory returned NULL."""

    kind = "null"

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} returned NULL")
        self.call = call


class MissingFunction(Failure):
    """The library does not export this function (older runtimes and the mini runtime lack some)."""

    kind = "missing-function"

    def __init__(self, call: str) -> None:
        super().__init__(f"the runtime library does not export {call}")
        self.call = call


class LibraryFailure(Failure):
    """The runtime library cannot be opened; the message says why and what to do."""

    kind = "library"


class MappingFailure(Failure):
    """A process cannot map the memory that it was handed by descriptor."""

    kind = "mapping"


class StorageFailure(Failure):
    """The board's file system refused a model (no room, no permission)."""

    kind = "storage"


class ClockFailure(Failure):
    """Clocks cannot be pinned at all: they are already, or there is nobody to put them back."""

    kind = "clocks"


class DeadlineFailure(Failure):
    """The list takes longer than the host waits; the board itself answers."""

    kind = "deadline"


class HungFailure(Failure):
    """A request did not come to its end by the host's deadline; the agent ends after it has said so."""

    kind = "hung"


class InternalFailure(Failure):
    """The agent itself is at fault; the message ends with the traceback."""

    kind = "internal"


def as_failure(error: BaseException) -> Failure:
    """The exception itself where it is ours, else an ``InternalFailure`` that carries its traceback."""
    if isinstance(error, Failure):
        return error
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return InternalFailure(f"{type(error).__name__}: {error}\n{trace}")


def located(error: BaseException, *path: int) -> Failure:
    """The exception as a ``Failure`` whose ``at`` begins with ``path``."""
    failure = as_failure(error)
    failure.at[:0] = path
    return failure
