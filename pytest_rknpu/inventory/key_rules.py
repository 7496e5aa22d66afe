"""Which key of a ``[[board]]`` table goes with which runtime or transport, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_rknpu.inventory.board_table import Board

MEANS_TRANSPORT: Mapping[str, str] = {"host": "ssh", "serial": "adb", "place": "labgrid", "filter": "labgrid"}
"""The transport of a real board that has such a key and does not name its transport."""

_OVER_SSH = ("ssh", "labgrid")

_GOES_WITH: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # key: the key that it depends on, and the values of that one with which it is taken
    "transport": ("runtime", ("librknnrt", "emulator")),
    "power": ("runtime", ("librknnrt", "emulator", "connected")),
    **dict.fromkeys(("library", "model_cache", "stand_in"), ("runtime", ("librknnrt",))),
    **dict.fromkeys(("host", "user", "port"), ("transport", ("ssh",))),
    **dict.fromkeys(("ssh_config", "key", "jump", "host_key", "sudo"), ("transport", _OVER_SSH)),
    "python": ("transport", (*_OVER_SSH, "adb", "local")),
    "serial": ("transport", ("adb",)),
    **dict.fromkeys(("coordinator", "place", "filter", "places"), ("transport", ("labgrid",))),
    **dict.fromkeys(("device_id", "target"), ("runtime", ("connected",))),
    **dict.fromkeys(
        ("seed", "faults", "runtime_version", "driver_version", "latency_model"), ("runtime", ("emulator",))
    ),
    # an agent alone can do it
    **dict.fromkeys(("pin", "allow_unpinned"), ("runtime", ("emulator", "librknnrt"))),
}


_HOST_KEY_WARNINGS: Mapping[str, str] = {
    "accept-new": "whoever answers first under its address is taken for the board",
    "unchecked": "anybody on the network can answer in the board's place, and read what is sent",
}


def loose_host_keys(boards: Iterable[Board]) -> list[str]:
    """Return a warning for each board whose host key is not checked."""
    return [
        f'[[board]] "{board.name}", key "host_key": {board.host_key}: {_HOST_KEY_WARNINGS[board.host_key]}'
        for board in boards
        if board.host_key in _HOST_KEY_WARNINGS
    ]


def goes_with(key: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the (key, values) without which ``key`` is refused, or None where it always fits."""
    return _GOES_WITH.get(key)


def out_of_place(key: str, table: object) -> str | None:
    """Say why ``key`` does not belong in ``table``, an object with the other keys as attributes, or None."""
    need = goes_with(key)
    if need is None:
        return None
    needed_key, values = need
    actual = getattr(table, needed_key)
    if actual in values:
        return None
    wanted = " or ".join(f'{needed_key} = "{value}"' for value in values)
    has = f'has {needed_key} = "{actual}"' if actual is not None else f"has no {needed_key}"
    return f"only for {wanted}, but this board {has}; remove it"
