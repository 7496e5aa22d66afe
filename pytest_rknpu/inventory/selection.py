"""Which boards of a boards.toml a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.wording import did_you_mean


def select(boards: Iterable[Board], globs: Sequence[str] = (), socs: Sequence[str] = ()) -> list[Board]:
    """Return the boards whose name matches any of ``globs`` and whose SoC is any of ``socs``, in their order.

    An empty sequence asks for nothing and so excludes nothing. Globs are shell-style (``*``, ``?``, ``[]``)
    and compared in lower case; SoCs go by any name or alias.

    Raises ConfigurationError if a SoC is unknown, or if no board is left: what was asked for and what there
    is. A glob that matches no board is an error too: its board would be missing from the run unnoticed.
    """
    boards = list(boards)
    names = [board.name for board in boards]
    wanted_socs = {find_soc(soc).name for soc in socs}
    for glob in globs:
        if not any(fnmatchcase(name, glob.lower()) for name in names):
            raise ConfigurationError(
                f"no board matches --board {glob!r}{did_you_mean(glob, names)}; there are: {_listing(boards)}"
            )
    chosen = [
        board
        for board in boards
        if (not globs or any(fnmatchcase(board.name, glob.lower()) for glob in globs))
        and (not socs or board.soc in wanted_socs)
    ]
    if not chosen:
        asked = " ".join([*(f"--board {glob!r}" for glob in globs), *(f"--soc {soc!r}" for soc in socs)])
        raise ConfigurationError(
            f"no board is left by {asked or 'an empty list'}; there are: {_listing(boards)}"
        )
    return chosen


def _listing(boards: Sequence[Board]) -> str:
    return ", ".join(f"{board.name} ({board.soc})" for board in boards) or "none"
