"""Filling the database: what is new among the files is read, the rest is passed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history.finding import LeftOut, run_files
from pytest_rknpu.history.reading import read_run_file
from pytest_rknpu.history.store import HistoryDatabase
from pytest_rknpu.verdict import sendable


@dataclass(frozen=True)
class Collected:
    """``added`` runs are new, ``unchanged`` files were read earlier, ``again`` held a run that is there.

    ``left_out`` is damaged or unfinished.
    """

    added: int
    unchanged: int
    again: int
    left_out: tuple[LeftOut, ...]


def collect(
    database: HistoryDatabase, named: Sequence[Path], progress: Callable[[int], None] = lambda read: None
) -> Collected:
    """Take in every run under the names. ``progress`` hears how many files were read so far.

    Raises ConfigurationError for a name that does not exist, or a database that cannot be used.
    """
    known = database.sources()
    added = unchanged = again = 0
    left_out: list[LeftOut] = []
    for found in run_files(named):
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        path = sendable(os.path.abspath(found))
        try:
            status = os.stat(found)
        except OSError as error:
            left_out.append(LeftOut(str(found), error.strerror or str(error)))
            continue
        if known.get(path) == (status.st_size, status.st_mtime_ns):
            unchanged += 1
            continue
        what = _take_in(database, found, path, status)
        if isinstance(what, LeftOut):
            left_out.append(what)
        elif what:
            added += 1
        else:
            again += 1
        progress(added + again)
    return Collected(added, unchanged, again, tuple(left_out))


def _take_in(database: HistoryDatabase, found: Path, path: str, status: os.stat_result) -> bool | LeftOut:
    """Whether the run in a file was new."""
    try:
        run = read_run_file(found)
    except ConfigurationError as error:
        return LeftOut(str(found), str(error))
    what = database.add(path, status, run)
    if what == "left":
        return LeftOut(
            str(found),
            f"is another copy of run {run.results.run.run_id} with other results, and not a longer one",
        )
    return what in ("added", "replaced")
