"""Writing a file whole or not at all: a reader never finds half a document."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` (UTF-8). Raises OSError as files do; what was there then stays."""
    unfinished = path.with_suffix(".unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
