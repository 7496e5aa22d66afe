"""Where the runs are: the files under the folders that somebody names."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.report.results import FILE_NAME

_BUNDLE = ".zip"
_LINES = ".jsonl"
_DATABASE_HEAD = b"SQLite format 3\x00"
_OURS = b'"pytest-rknpu/results-'
_HEAD_BYTES = 256


@dataclass(frozen=True)
class LeftOut:
    """A file or folder that was not read, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        return self.reason if self.reason.startswith(self.path) else f"{self.path}: {self.reason}"


def run_files(named: Sequence[Path]) -> Iterator[Path | LeftOut]:
    """Every file that holds a run, in a fixed order: files as they are named, folders with all below them.

    In folders these are `results.jsonl`, other `.jsonl` files that begin as one, and archives that hold one.
    Links to folders are not followed. Raises ConfigurationError for a name that does not exist.
    """
    for path in named:
        if path.is_dir():
            yield from _below(path)
        elif path.exists():
            yield _single(path)
        else:
            raise ConfigurationError(
                f"{path}: is not there; give report folders, results.jsonl files or bundle archives"
            )


def _is_file(path: Path) -> bool:
    """A file, or a link that leads nowhere, which is to be named; reading a pipe may never end."""
    return path.is_file() or not path.exists()


def _single(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"{path}: is no file; write what comes out of it into one, and name that")
    if _head(path).startswith(_DATABASE_HEAD):
        raise ConfigurationError(f"{path}: is a database; give it as --database {path}")
    return path


def _below(folder: Path) -> Iterator[Path | LeftOut]:
    unread: list[LeftOut] = []

    def complain(error: OSError) -> None:
        unread.append(LeftOut(str(error.filename), error.strerror or str(error)))

    for place, folders, files in os.walk(folder, onerror=complain):
        folders.sort()
        for name in sorted(files):
            path = Path(place, name)
            if _is_file(path) and _may_hold_a_run(path):
                yield path
    yield from unread


def _may_hold_a_run(path: Path) -> bool:
    """A damaged file of ours must be found too, to be named; what is plainly another's must not."""
    if path.name == FILE_NAME:
        return True
    if path.suffix == _LINES:
        return _OURS in _head(path)
    if path.suffix != _BUNDLE:
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return FILE_NAME in archive.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
        return True


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""
