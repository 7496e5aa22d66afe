"""Folders that cannot be written, or whose disk is full, as errors that say which and what to do."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError, ToolkitError

_NEARLY_FULL = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def explained(folder: Path, name: str, variable: str) -> Iterator[None]:
    """ConfigurationError in place of what a full or unwritable ``folder`` makes of the block.

    ``name`` says what the folder is, ``variable`` what chooses another. The toolkit fails in many ways on a
    full disk, not all of which name it; hence the look at the disk.
    """
    try:
        yield
    except (OSError, ToolkitError) as error:
        free = _free_bytes(folder)
        says_full = isinstance(error, OSError) and error.errno in _FULL
        if says_full or (free is not None and free < _NEARLY_FULL):
            left = "" if free is None else f", {free / 2**20:.1f} MiB free"
            raise ConfigurationError(
                f"the disk of {name} {folder} is full{left} ({error}): "
                f"make room there, or set {variable} to a folder elsewhere"
            ) from error
        if isinstance(error, OSError) and _on_the_way(error.filename, folder):
            raise ConfigurationError(
                f"cannot write {name} {folder} ({error.strerror}: {error.filename}): "
                f"set {variable} to a folder that can be written"
            ) from error
        raise


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """An empty folder below ``$TMPDIR`` for the block. ConfigurationError: it is full, or not to be had."""
    try:
        created = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as error:
        raise ConfigurationError(
            f"no folder for temporary files ({error}): set TMPDIR to a folder that can be written"
        ) from error
    with created as name, explained(Path(name), "the temporary folder", "TMPDIR"):
        yield Path(name)


def _on_the_way(name: object, folder: Path) -> bool:
    """Whether a file is in ``folder``, or one of the folders that it lies in and that could not be made."""
    if not isinstance(name, str):
        return False
    return Path(name).is_relative_to(folder) or folder.is_relative_to(name)


def _free_bytes(folder: Path) -> int | None:
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free
    return None
