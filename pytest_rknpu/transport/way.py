"""What every way to a board comes down to: a command of this host behind which Python runs on the board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Way:
    """A command whose stdin and stdout are those of a Python on the board that runs `prelude.source`.

    ``command`` is an argument vector; ``by_hand`` what a user types in a shell to see the same for himself.
    ``python`` and ``remedies`` serve the words about a command that ended early: ``remedies`` are pairs of a
    regular expression, looked for in what the command said, and a sentence about it.
    """

    command: tuple[str, ...]
    by_hand: str
    python: str
    remedies: Mapping[str, str]


class NoConnection(Exception):
    """No link came about; the message says why, as far as one can tell from here."""
