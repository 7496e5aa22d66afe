"""Writing a file whole or not at all: a reader never finds half a document."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by ``content`` (text as UTF-8). Raises OSError as files do; what was there then stays.

    A link stays one: what it leads to is replaced. A device or a pipe is written to.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if path.is_dir() or not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = Path(os.path.realpath(path))
    # A name that is nobody's, and no longer where the file's own is as long as names can be.
    unfinished = target.with_name(f".{secrets.token_hex(8)}.unfinished")
    try:
        with unfinished.open("xb") as file:
            file.write(data)
        os.replace(unfinished, target)
    except BaseException:  # Ctrl-C too leaves nothing behind
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
