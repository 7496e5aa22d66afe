"""The database of runs: SQLite, filled run by run, each in one transaction.

A process that dies leaves whole runs only, and two processes at once wait for each other. `rknpu history`
without ``--database`` uses the same tables in memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history.reading import RunRead
from pytest_rknpu.history.rows import rows_of

SCHEMA_VERSION = 1
_APPLICATION = 0x524B4E48  # "RKNH", so that no other program's file is taken for one of these
_WAIT_S = 120.0

Added = Literal["added", "known", "replaced", "left"]
"""What became of a run: new; there already; in place of a shorter copy; less than the copy that is there."""

# ``result_by_time`` is there to tell fast when a test turned, ``result_by_versions`` which tests are flaky.
# ``moment`` is the start of the run in seconds since 1970.
_TABLES = """
CREATE TABLE run(id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, started TEXT NOT NULL,
  plugin TEXT NOT NULL, effort TEXT NOT NULL, digest TEXT NOT NULL, tests INTEGER NOT NULL);
CREATE TABLE source(path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  run INTEGER NOT NULL REFERENCES run(id)) WITHOUT ROWID;
CREATE TABLE board(id INTEGER PRIMARY KEY, name TEXT NOT NULL, soc TEXT NOT NULL, evidence TEXT NOT NULL,
  ran_on TEXT NOT NULL, UNIQUE(name, soc, evidence, ran_on));
CREATE TABLE versions(id INTEGER PRIMARY KEY, said TEXT NOT NULL UNIQUE);
CREATE TABLE test(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE requirements(id INTEGER PRIMARY KEY, ids TEXT NOT NULL UNIQUE);
CREATE TABLE result(run INTEGER NOT NULL REFERENCES run(id), board INTEGER NOT NULL, test INTEGER NOT NULL,
  versions INTEGER NOT NULL, requirements INTEGER NOT NULL, outcome TEXT NOT NULL, seed INTEGER NOT NULL,
  tried INTEGER NOT NULL, message TEXT NOT NULL, moment INTEGER NOT NULL);
CREATE INDEX result_by_time ON result(board, test, moment, run, outcome);
CREATE INDEX result_by_versions ON result(board, test, versions, outcome, tried, seed, moment, run);
CREATE INDEX result_by_run ON result(run);
CREATE INDEX result_failing ON result(board, test) WHERE outcome IN ('fail', 'waived');
CREATE TABLE cell(run INTEGER NOT NULL REFERENCES run(id), board INTEGER NOT NULL, requirement TEXT NOT NULL,
  outcome TEXT NOT NULL, deciding INTEGER NOT NULL, tests INTEGER NOT NULL,
  PRIMARY KEY(board, run, requirement)) WITHOUT ROWID;
CREATE TABLE held(run INTEGER NOT NULL REFERENCES run(id), board INTEGER NOT NULL, versions INTEGER NOT NULL,
  PRIMARY KEY(board, run)) WITHOUT ROWID;
CREATE TABLE latency(run INTEGER NOT NULL REFERENCES run(id), board INTEGER NOT NULL, test INTEGER NOT NULL,
  versions INTEGER NOT NULL, requirements INTEGER NOT NULL, model TEXT NOT NULL, core_mask TEXT NOT NULL,
  outcome TEXT NOT NULL, disturbed TEXT NOT NULL, processes INTEGER NOT NULL, samples INTEGER NOT NULL,
  quantile REAL NOT NULL, value_ms REAL NOT NULL, lower_ms REAL, upper_ms REAL);
CREATE INDEX latency_by_run ON latency(run);
"""
_OF_A_RUN = ("result", "cell", "held", "latency")


@dataclass(frozen=True)
class Size:
    """How much a database holds."""

    runs: int
    results: int


class HistoryDatabase:
    """A database of runs; a context manager. ``path`` None keeps it in memory.

    Raises ConfigurationError for a file that is none of these, has another schema version, cannot be written
    to, or is held by another process for longer than two minutes.
    """

    def __init__(self, path: Path | None) -> None:
        if path is not None and path.exists() and not path.is_file():
            raise ConfigurationError(f"{path}: is no file; give --database FILE, which is made where none is")
        self.path = path
        self._ids: dict[tuple[str, tuple[str, ...]], int] = {}
        with self._in_words():
            # No transactions of the module's own: they would begin late, and read what another one changes.
            self._connection = sqlite3.connect(str(path or ":memory:"), timeout=_WAIT_S, isolation_level=None)
            self._prepare()

    def __enter__(self) -> HistoryDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self._in_words():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """All queries of the block see one state, whoever adds runs meanwhile."""
        with self._in_words():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._roll_back()

    def sources(self) -> dict[str, tuple[int, int]]:
        """The files that were read, with their size and time of change (ns) by then."""
        return {
            path: (size, time) for path, size, time in self.rows("SELECT path, size, mtime_ns FROM source")
        }

    def size(self) -> Size:
        """How many runs there are, and results in them."""
        ((runs, results),) = self.rows("SELECT count(*), coalesce(sum(tests), 0) FROM run")
        return Size(runs, results)

    def add(self, path: str, status: stat_result, run: RunRead) -> Added:
        """Take in a run that was read from ``path``; a run that is there already counts once."""
        with self._transaction():
            number, what = self._run_row(run)
            if what in ("added", "replaced"):
                self._fill(number, run)
            if what != "left":  # that one is named each time
                self._connection.execute(
                    "INSERT OR REPLACE INTO source VALUES(?, ?, ?, ?)",
                    (path, status.st_size, status.st_mtime_ns, number),
                )
        return what

    def _run_row(self, run: RunRead) -> tuple[int, Added]:
        record, tests = run.results.run, len(run.results.tests)
        values = (run.started, record.plugin, record.effort, run.digest, tests)
        known = self._connection.execute(
            "SELECT id, digest, tests FROM run WHERE run_id = ?", (record.run_id,)
        ).fetchone()
        if known is None:
            cursor = self._connection.execute(
                "INSERT INTO run(run_id, started, plugin, effort, digest, tests) VALUES(?, ?, ?, ?, ?, ?)",
                (record.run_id, *values),
            )
            return int(cursor.lastrowid or 0), "added"
        number, digest, stored_tests = known
        if digest == run.digest:
            return number, "known"
        if tests <= stored_tests:
            return number, "left"
        for table in _OF_A_RUN:
            self._connection.execute(f"DELETE FROM {table} WHERE run = ?", (number,))
        self._connection.execute(
            "UPDATE run SET started = ?, plugin = ?, effort = ?, digest = ?, tests = ? WHERE id = ?",
            (*values, number),
        )
        return number, "replaced"

    def _fill(self, number: int, run: RunRead) -> None:
        rows = rows_of(run.results, run.moment, self._id)
        for table in _OF_A_RUN:
            wanted = getattr(rows, table)
            if wanted:
                marks = ", ".join("?" * (len(wanted[0]) + 1))
                self._connection.executemany(
                    f"INSERT INTO {table} VALUES({marks})", [(number, *row) for row in wanted]
                )

    def _id(self, table: str, columns: tuple[str, ...], values: tuple[str, ...]) -> int:
        """The number of a board, a set of versions, a test or requirements; none is ever taken away."""
        key = (table, values)
        found = self._ids.get(key)
        if found is None:
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
            self._connection.execute(f"INSERT OR IGNORE INTO {table}({names}) VALUES({marks})", values)
            where = " AND ".join(f"{column} = ?" for column in columns)
            ((found,),) = self._connection.execute(f"SELECT id FROM {table} WHERE {where}", values)
            self._ids[key] = found
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing. The lock is taken at once: nobody else changes what this one has looked at."""
        with self._in_words():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._ids.clear()
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # a full disk ends it by itself
            self._connection.execute("ROLLBACK")

    def _prepare(self) -> None:
        """Make the tables in a new file; refuse what is not ours."""
        if not self._has_tables():
            self._connection.execute("BEGIN IMMEDIATE")
            if not self._has_tables():  # else another process was first
                for statement in _TABLES.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            self._connection.execute("COMMIT")
        ((application,),) = self._connection.execute("PRAGMA application_id")
        ((version,),) = self._connection.execute("PRAGMA user_version")
        if application != _APPLICATION:
            raise ConfigurationError(f"{self.path}: is a database of another program; name another file")
        if version != SCHEMA_VERSION:
            raise ConfigurationError(
                f"{self.path}: has schema {version}, this version reads {SCHEMA_VERSION}; name another file, "
                "and the runs are read into it anew"
            )

    def _has_tables(self) -> bool:
        ((count,),) = self._connection.execute("SELECT count(*) FROM sqlite_master")
        return bool(count)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ConfigurationError(f"{self.path or 'database in memory'}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise ConfigurationError(
                f"{self.path}: {error}; name another file, and the runs are read into it anew"
            ) from None


def requirement_ids(text: str) -> tuple[str, ...]:
    """What the table of requirements holds."""
    return tuple(json.loads(text))
