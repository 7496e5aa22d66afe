"""Checks of the values in a command: each takes (value, blobs) and returns what the agent works with.

A failed check raises ``ProgramFailure`` with what was expected; the caller adds operation and key.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple

from .constants import ErrorCode
from .failures import ProgramFailure

Blobs = Dict[str, bytes]
Check = Callable[[Any, Blobs], Any]
REQUIRED: Any = object()


class AnyCode:
    """Stands where a set of codes is expected, and holds every code."""

    def __contains__(self, code: object) -> bool:
        return True


ANY_CODE = AnyCode()
SUCCESS = frozenset({0})

U32 = 2**32 - 1
U64 = 2**64 - 1
MAXIMUM_THRASH = 2**30
MAXIMUM_RUNS = 1_000_000
MAXIMUM_CONTAINERS = 16
MAXIMUM_VALUES = 1_000_000
"""How many values one ``save`` may collect in loops."""
MAXIMUM_SAVED_BYTES = 2**29
"""How many bytes one program may save: they wait in the board's memory, and cross the link in one message."""


class Field(NamedTuple):
    """One key of a command: its check, and its default (``REQUIRED`` where the key must be there)."""

    check: Check
    default: Any = REQUIRED


def _wrong(expected: str, value: Any) -> ProgramFailure:
    shown = repr(value)
    return ProgramFailure(f"expected {expected}, got {shown if len(shown) < 80 else shown[:77] + '...'}")


def name(value: Any, blobs: Blobs) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value:
        raise _wrong("a name (non-empty string)", value)
    return value


def boolean(value: Any, blobs: Blobs) -> bool:
    """True, False, 1 or 0."""
    if not isinstance(value, (bool, int)) or value not in (0, 1):
        raise _wrong("a boolean", value)
    return bool(value)


def integer(low: int, high: int) -> Check:
    """An int (no bool) between the bounds, both included."""

    def check(value: Any, blobs: Blobs) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _wrong(f"an integer from {low} to {high}", value)
        return value

    return check


def seconds(value: Any, blobs: Blobs) -> float:
    """A positive number of seconds, a day at most."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 86_400:
        raise _wrong("a number of seconds above 0 and below a day", value)
    return float(value)


def optional(check: Check) -> Check:
    """None, or what ``check`` accepts."""

    def checked(value: Any, blobs: Blobs) -> Any:
        return None if value is None else check(value, blobs)

    return checked


def blob(value: Any, blobs: Blobs) -> bytes:
    """The name of a blob of the program; gives its bytes."""
    if not isinstance(value, str) or value not in blobs:
        raise _wrong(f"the name of a blob (there are {sorted(blobs) or 'none'})", value)
    return blobs[value]


def blob_list(value: Any, blobs: Blobs) -> tuple[bytes, ...]:
    """A non-empty list of blob names; gives their bytes."""
    if not isinstance(value, list) or not value:
        raise _wrong("a non-empty list of blob names", value)
    return tuple(blob(entry, blobs) for entry in value)


def sha256(value: Any, blobs: Blobs) -> str:
    """64 lower-case hexadecimal digits."""
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise _wrong("a sha256 as 64 lower-case hexadecimal digits", value)
    return value


def command_list(value: Any, blobs: Blobs) -> list[Any]:
    """A list; its commands are checked when they are compiled."""
    if not isinstance(value, list):
        raise _wrong("a list of commands", value)
    return value


def name_list(value: Any, blobs: Blobs) -> list[str]:
    """A list of one to 16 names."""
    if not isinstance(value, list) or not 1 <= len(value) <= 16:
        raise _wrong("a list of 1 to 16 names", value)
    return [name(entry, blobs) for entry in value]


def names(value: Any, blobs: Blobs) -> list[str]:
    """As `name_list`, or empty."""
    return name_list(value, blobs) if value != [] else []


def integer_list(value: Any, blobs: Blobs) -> list[int]:
    """A list of one to 16 unsigned 32-bit integers."""
    if not isinstance(value, list) or not 1 <= len(value) <= 16:
        raise _wrong("a list of 1 to 16 integers", value)
    check = integer(0, U32)
    return [check(entry, blobs) for entry in value]


def integers_by_name(value: Any, blobs: Blobs) -> dict[str, int]:
    """A dict of unsigned 64-bit integers by name."""
    if not isinstance(value, dict):
        raise _wrong("a dict of integers by name", value)
    check = integer(0, U64)
    return {name(key, blobs): check(entry, blobs) for key, entry in value.items()}


def group_list(value: Any, blobs: Blobs) -> list[list[Any]]:
    """A list of one to 64 command lists."""
    if not isinstance(value, list) or not 1 <= len(value) <= 64:
        raise _wrong("a list of 1 to 64 command lists", value)
    return [command_list(entry, blobs) for entry in value]


def expectation(value: Any, blobs: Blobs) -> Any:
    """``"success"``, ``"any"`` or a list of code names; gives the set of codes that are accepted."""
    if value == "success":
        return SUCCESS
    if value == "any":
        return ANY_CODE
    if not isinstance(value, list) or not value or not all(isinstance(entry, str) for entry in value):
        raise _wrong('"success", "any" or a non-empty list of code names', value)
    unknown = [entry for entry in value if entry not in ErrorCode.__members__]
    if unknown:
        raise ProgramFailure(f"unknown code names {unknown}; there are {list(ErrorCode.__members__)}")
    return frozenset(int(ErrorCode[entry]) for entry in value)


def record_list(fields: dict[str, Field]) -> Check:
    """A non-empty list of dicts with exactly these fields; gives a list of checked dicts."""

    def check(value: Any, blobs: Blobs) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not 1 <= len(value) <= 256:
            raise _wrong("a list of 1 to 256 dicts", value)
        return [record(entry, fields, blobs) for entry in value]

    return check


def record(value: Any, fields: dict[str, Field], blobs: Blobs) -> dict[str, Any]:
    """Check a dict against its fields: no unknown key, no missing one, each value as it should be."""
    if not isinstance(value, dict):
        raise _wrong("a dict", value)
    unknown = sorted(repr(key) for key in value if key not in fields)
    if unknown:
        raise ProgramFailure(f"unknown keys {', '.join(unknown)}; there are {', '.join(fields)}")
    checked: dict[str, Any] = {}
    for key, field in fields.items():
        if key not in value:
            if field.default is REQUIRED:
                raise ProgramFailure(f"key {key!r} is missing")
            checked[key] = field.default
            continue
        try:
            checked[key] = field.check(value[key], blobs)
        except ProgramFailure as error:
            raise ProgramFailure(f"key {key!r}: {error}") from None
    return checked


def any_value(value: Any, blobs: Blobs) -> Any:
    """Whatever it is; for keys whose operation checks them itself."""
    return value
