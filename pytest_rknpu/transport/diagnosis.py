"""Why a command that was to bring a link ended instead, from its exit code and what it said."""

from __future__ import annotations

import re

from pytest_rknpu.transport.prelude import OLDEST_PYTHON, TOO_OLD
from pytest_rknpu.transport.way import Way

_LAST_LINES = 6
_LINE_LETTERS = 300
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_OLDEST = ".".join(map(str, OLDEST_PYTHON))

_PYTHON_REMEDIES = {
    rf"{re.escape(TOO_OLD)}(\S+)": (
        "Python {1} there is too old, {oldest} or newer is needed; install one and name it by python in "
        "boards.toml"
    ),
    r"No module named '?(\w+)": (
        "the Python there lacks {1} of its standard library; on Debian install python3 (python3-minimal is "
        "not enough), on Buildroot and Yocto its ctypes and further modules"
    ),
    r"(?i)python\S*: (?:command )?not found|can't execute.*python|No such file or directory": (
        "there is no {python}; install Python {oldest} or newer, or name one by python in boards.toml (a "
        'board without Python: runtime = "connected", docs/user-models.md)'
    ),
}


def explain(way: Way, code: int | None, said: str, *, started: bool = False) -> str:
    """One or two sentences: the reason, and the command's last words.

    ``code``: its exit code, None where it did not end. ``started``: Python on the board had answered already.
    """
    reason = (None if started else _known(way, said)) or _by_code(way, code, started)
    words = " | ".join(_printable(line) for line in said.strip().splitlines()[-_LAST_LINES:])
    return f"{reason} (its words: {words})" if words else reason


def _printable(line: str) -> str:
    """A line of somebody else's, without what would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()[:_LINE_LETTERS]


def _known(way: Way, said: str) -> str | None:
    for pattern, sentence in {**way.remedies, **_PYTHON_REMEDIES}.items():
        found = re.search(pattern, said)
        if found:
            first = found[1] if found.re.groups else ""
            return sentence.replace("{python}", way.python).replace("{oldest}", _OLDEST).replace("{1}", first)
    return None


def _by_code(way: Way, code: int | None, started: bool) -> str:
    if code == _NOT_FOUND:
        return f"exit code {code}: there is no {way.python}; set python in boards.toml"
    if code == _NOT_EXECUTABLE:
        return f"exit code {code}: {way.python} cannot be executed there; set python in boards.toml"
    program = way.command[0].rsplit("/", 1)[-1]
    if code is None:
        return f"{program} closed the link"
    if started:
        return f"{program} ended with exit code {code} just after Python answered"
    return f"{program} ended with exit code {code} before Python answered"
