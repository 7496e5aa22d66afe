"""Lines below the cursor of a terminal, which make room for whatever is written above them.

The cursor stays where the other writer left it, in the middle of a line if need be: nothing is assumed of its
column. Whoever writes next through this object erases the lines first; they come back with the next `show`.
They go to the terminal itself, whatever standard output is by then: pytest redirects it while a test runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any, TextIO

ERASE_BELOW = "\x1b[J"
_DOWN = "\x1bD"  # unlike a newline it keeps the column, and scrolls where there is no room
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class BelowCursor:
    """Stands in for the file ``above``, a terminal, that others write to."""

    def __init__(self, above: TextIO) -> None:
        self.above = above
        self._terminal = os.dup(above.fileno())
        self.shown = False
        """Whether the lines are there."""

    def size(self) -> os.terminal_size:
        """Columns and rows of the terminal; 80 by 24 where it does not know."""
        try:
            size = os.get_terminal_size(self._terminal)
        except OSError:
            size = os.terminal_size((0, 0))
        return size if size.columns and size.lines else os.terminal_size((80, 24))

    def show(self, lines: Sequence[str]) -> None:
        """Show these lines in place of those that were shown; each is cut at the terminal's edge."""
        self.above.flush()
        room = f"{_DOWN * len(lines)}\x1b[{len(lines)}A" if lines else ""
        text = "".join(f"\r\n{line}" for line in lines)
        self._send(f"{ERASE_BELOW}{room}{_SAVE}{_NO_WRAP}{text}{_WRAP}{_RESTORE}")
        self.shown = bool(lines)

    def clear(self) -> None:
        """Take the lines away."""
        if self.shown:
            self.shown = False
            self._send(ERASE_BELOW)

    def close(self) -> None:
        """Take the lines away for good."""
        self.clear()
        os.close(self._terminal)

    def write(self, text: str) -> int:
        """Write above the lines, which go."""
        self.clear()
        return self.above.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.above, name)

    def _send(self, text: str) -> None:
        """In one piece, so that nothing of another process gets between. A terminal may have gone away."""
        with contextlib.suppress(OSError):
            os.write(self._terminal, text.encode("utf-8", "replace"))
