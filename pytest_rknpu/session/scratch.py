"""The folder that stands for an emulated board's disk: gone with the session, or after a kill with the next.

A run that was killed cannot clear away. So each folder holds a lock for as long as its process lives, which
the operating system frees; whoever opens a board next removes the folders whose lock is free.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from pytest_rknpu.errors import BoardError

_PREFIX = "rknpu-emulated-"
_LOCK = "lock"
# A folder this young may belong to somebody who has made it, and not locked it yet.
_YOUNG_SECONDS = 60.0


@contextmanager
def scratch_folder(board: str) -> Iterator[Path]:
    """A folder of ``board``'s own below the temporary folder. Raises BoardError where none can be made."""
    _sweep(Path(tempfile.gettempdir()))
    with contextlib.ExitStack() as stack:
        with said_of(board):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX)))
            lock = filelock.FileLock(folder / _LOCK)
            lock.acquire(timeout=0)
        stack.callback(lock.release)
        yield folder


@contextmanager
def said_of(board: str) -> Iterator[None]:
    """A disk without room, say, is an error that names the board and the folder."""
    try:
        yield
    except OSError as error:
        raise BoardError(
            f"board {board}: its folder below {tempfile.gettempdir()} cannot be made "
            f"({error.strerror or error}); make room there, or set TMPDIR to another folder"
        ) from error


def _sweep(parent: Path) -> None:
    """Remove what killed runs of this user left. Nothing of it is an error: somebody else may be as quick."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, filelock.Timeout):
            made = folder.lstat()
            if made.st_uid != os.getuid() or time.time() - made.st_mtime < _YOUNG_SECONDS:
                continue
            lock = filelock.FileLock(folder / _LOCK)
            with lock.acquire(timeout=0):
                shutil.rmtree(folder, ignore_errors=True)
