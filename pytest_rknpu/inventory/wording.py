"""Two things that every message about a mistyped word needs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_QUOTE = 60


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``' (did you mean "x"?)'`` for the known word nearest to ``word``, or the empty string."""
    matches = difflib.get_close_matches(word.lower()[:_LONGEST_QUOTE], sorted(known), n=1, cutoff=0.6)
    return f' (did you mean "{matches[0]}"?)' if matches else ""


def quoted(value: object) -> str:
    """Show a value on one line, cut where it is long, with nothing in it that a terminal would obey."""
    text = f'"{ascii(value)[1:-1]}"' if isinstance(value, str) else ascii(value)
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "..."
