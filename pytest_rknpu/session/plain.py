"""What can cross the link to a board: plain data. All else is refused here, by name, before it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsIndex

from pytest_rknpu.errors import HarnessError

# The agent takes far fewer levels of command lists; this only keeps the walk itself finite.
_DEEPEST = 50


def plain_command(command: Mapping[str, Any], place: str) -> dict[str, Any]:
    """A copy of a command that holds nothing but plain data; whole numbers of numpy become int.

    Raises HarnessError that names ``place``, operation and key for what cannot be sent.
    """
    where = f"{place} ({command.get('op')})"
    if place.count(".") > _DEEPEST:
        raise HarnessError(f"{where}: lists are nested more than {_DEEPEST} deep")
    return {key: _plain(value, f"{where}, key {key!r}", place) for key, value in command.items()}


def plain_bytes(data: Any, what: str) -> bytes:
    """Bytes of any bytes-like object. HarnessError for what is none, an array with a shape or a text, say."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    hint = "; take its .tobytes()" if hasattr(data, "tobytes") else ""
    raise HarnessError(f"{what}: takes bytes, not {type(data).__name__}{hint}")


def _plain(value: Any, what: str, place: str) -> Any:
    """``value`` as plain data. A command inside it is named by its own place, such as 3.0."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return value
    if isinstance(value, Mapping):
        if "op" in value:
            return plain_command(value, place)
        return {_key(key, what): _plain(entry, f"{what}[{key!r}]", place) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry, f"{what}[{index}]", f"{place}.{index}") for index, entry in enumerate(value)]
    if isinstance(value, str):  # of a class derived from it, as are the next two
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, SupportsIndex):
        return value.__index__()
    raise HarnessError(
        f"{what}: a {type(value).__name__} cannot be sent to a board; plain numbers, texts, bytes, lists and "
        "dicts can"
    )


def _key(key: object, what: str) -> str:
    if not isinstance(key, str):
        raise HarnessError(f"{what}: the key {key!r} is no text")
    return str(key)
