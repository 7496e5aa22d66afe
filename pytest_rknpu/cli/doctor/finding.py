"""One thing that `rknpu doctor` has to say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

HOST = "this host"
BOARD = "board "
"""What a place begins with that is a board; its name follows."""


class Severity(str, Enum):
    """What a finding means for a run: a note costs single tests at most, a problem prevents it."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Finding:
    """``what`` is a word that scripts can go by (docs/command-line.md), ``where`` what it is about.

    ``mend`` is a command, or an edit of a named file; only what is ok has none.
    """

    what: str
    where: str
    severity: Severity
    says: str
    mend: str | None = None


def ok(what: str, where: str, says: str) -> Finding:
    """Nothing to do."""
    return Finding(what, where, Severity.OK, says)


def note(what: str, where: str, says: str, mend: str) -> Finding:
    """Something that prevents no run."""
    return Finding(what, where, Severity.NOTE, says, mend)


def problem(what: str, where: str, says: str, mend: str) -> Finding:
    """Something that prevents a run, on this board at least."""
    return Finding(what, where, Severity.PROBLEM, says, mend)
