"""Which boards of a boards.toml a run is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.board_table import Board
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.inventory.wording import did_you_mean


def select(
    boards: Iterable[Board], globs: Sequence[str] = (), socs: Sequence[str] = (), tags: Sequence[str] = ()
) -> list[Board]:
    """Return the boards whose name matches any of ``globs`` and whose SoC is any of ``socs``, in their order.

    An empty sequence asks for nothing and so excludes nothing. Globs are shell-style (``*``, ``?``, ``[]``)
    and compared in lower case; SoCs go by any name or alias. A board must have all ``tags``, ``KEY=VALUE``.

    Raises ConfigurationError if a SoC is unknown, or if no board is left: what was asked for and what there
    is. A glob that matches no board is an error too: its board would be missing from the run unnoticed.
    """
    wanted_tags = dict(map(_tag, tags))
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
        and wanted_tags.items() <= {"soc": board.soc, **board.tags}.items()
    ]
    if not chosen:
        options = (("--board", globs), ("--soc", socs), ("--tag", tags))
        asked = " ".join(f"{option} {value!r}" for option, values in options for value in values)
        raise ConfigurationError(
            f"no board is left by {asked or 'an empty list'}; there are: {_listing(boards)}"
        )
    return chosen


def _tag(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not (key and separator and value):
        raise ConfigurationError(f"--tag {text!r}: give KEY=VALUE, such as site=lab-2")
    return key, value


def _listing(boards: Sequence[Board]) -> str:
    return ", ".join(f"{board.name} ({board.soc})" for board in boards) or "none"
