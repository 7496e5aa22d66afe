"""results.jsonl: one line for the run, then one per test, each flushed: a killed run keeps what it had.

The format is described in ``docs/results.md`` and by ``results.schema.json`` beside this module.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.verdict import Measurement, Outcome, Samples, WaivedBy, sendable

SCHEMA = "pytest-rknpu/results-1"
FILE_NAME = "results.jsonl"
WITHOUT_BOARD = "_no-board"
"""Stands for the board in file names; no board can be called so: names begin with a letter or digit."""

_LONGEST_LINE = 2**20
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class PlannedBoard:
    """A board that was selected for the run, whether or not a test ran on it."""

    name: str
    soc: str
    evidence: str


@dataclass(frozen=True)
class RunRecord:
    """The first line. ``git`` is the state of the plugin's own checkout, None where it is installed.

    ``started`` is ISO 8601 in UTC; ``command`` is quoted for a shell. ``waivers`` is the SHA-256 of the
    waivers.toml in force, None where there is none.
    """

    schema: str
    run_id: str
    plugin: str
    git: str | None
    command: str
    seed: int
    effort: str
    started: str
    host: str
    python: str
    pytest: str
    boards: tuple[PlannedBoard, ...]
    waivers: str | None = None


@dataclass(frozen=True)
class Result:
    """One test. ``board``, ``soc`` and ``evidence`` are None where it is about no board.

    ``ran_on`` is the one that was used where ``board`` names a pool of equal boards, or a filter for places.
    ``waived_by`` is the waiver that covers its failure, None also for deviations that a suite itself knows.
    ``tried`` is False where the board was in quarantine by then: an ``infra`` outcome without an attempt.
    """

    requirement: tuple[str, ...]
    nodeid: str
    board: str | None
    soc: str | None
    evidence: str | None
    outcome: Outcome
    versions: Mapping[str, str]
    seed: int
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]
    message: str
    duration_s: float
    samples: tuple[Samples, ...] = ()
    waived_by: WaivedBy | None = None
    tried: bool = True
    ran_on: str | None = None

    def plain(self) -> dict[str, Any]:
        """The result as JSON's own types, in the order of the documentation."""
        table = asdict(self)
        table["outcome"] = str(self.outcome)
        for name in ("requirement", "measurements", "notes", "samples"):
            table[name] = list(table[name])
        return table


@dataclass(frozen=True)
class Results:
    """A whole file. ``torn`` says that its last line was cut off, as a killed run may leave it."""

    run: RunRecord
    tests: tuple[Result, ...]
    torn: bool


class ResultsWriter:
    """Appends to a new results.jsonl; an older one is replaced.

    Raises OSError as files do, ConfigurationError where another run is writing to that file.
    """

    def __init__(self, path: Path, run: RunRecord) -> None:
        self.path = path
        self._file: TextIO = _open_alone(path)
        self._write(asdict(run))

    def write(self, result: Result) -> None:
        """Write one line and flush it."""
        self._write(result.plain())

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()

    def _write(self, table: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(table, allow_nan=False) + "\n")
        self._file.flush()


def _open_alone(path: Path) -> TextIO:
    """Emptied only when nobody else writes to it: of two runs with one report folder one would be lost."""
    file = path.open("a", encoding="utf-8", newline="\n")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ConfigurationError(
            f"{path}: another run is writing to it; give --rknpu-report another folder, or wait for that run"
        ) from None
    except OSError:  # a file system without locks
        pass
    file.truncate(0)
    return file


def result_from(table: Mapping[str, Any]) -> Result:
    """A result out of JSON. Raises KeyError, TypeError or ValueError for what is none."""
    return Result(
        requirement=_texts(table["requirement"]),
        nodeid=_text(table["nodeid"]),
        board=_text_or_none(table["board"]),
        soc=_text_or_none(table["soc"]),
        evidence=_text_or_none(table["evidence"]),
        outcome=Outcome(table["outcome"]),
        versions={_text(name): _text(value) for name, value in _of(table["versions"], dict).items()},
        seed=int(table["seed"]),
        measurements=tuple(
            Measurement(_text(m["name"]), _of(m["value"], int, float, str, bool), _text(m["unit"]))
            for m in table["measurements"]
        ),
        notes=_texts(table["notes"]),
        message=_text(table["message"]),
        duration_s=float(table["duration_s"]),
        samples=tuple(
            Samples(_text(s["name"]), _text(s["unit"]), tuple(tuple(process) for process in s["processes"]))
            for s in table.get("samples", ())
        ),
        waived_by=WaivedBy(**table["waived_by"]) if table.get("waived_by") else None,
        ran_on=_text_or_none(table.get("ran_on")),
        tried=bool(table.get("tried", True)),
    )


def _text(value: Any) -> str:
    return str(_of(value, str))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _of(value, list, tuple)))


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _of(value: Any, *kinds: type) -> Any:
    """The value, if it is of one of these types: what somebody else wrote is not trusted any further."""
    if not isinstance(value, kinds):
        raise TypeError(f"{value!r:.60} is no {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def read_results(path: Path) -> Results:
    """Read a results.jsonl, whole or torn in its last line.

    Raises ConfigurationError that names file and line where it is not one.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    return parse_results(text, str(path))


def parse_results(text: str, path: str) -> Results:
    """The same for the text of a file that messages call ``path``."""
    lines = text.split("\n")
    unfinished = lines.pop()  # what follows the last newline: nothing, in a whole file
    if not lines:
        raise ConfigurationError(f"{path}: has no complete line; the run ended before it began")
    run = _read_line(path, 1, lines[0], _run_from)
    tests = tuple(
        _read_line(path, number, line, result_from) for number, line in enumerate(lines[1:], start=2)
    )
    return Results(run, tests, torn=bool(unfinished))


def names_reported(path: Path) -> list[str]:
    """The boards, `WITHOUT_BOARD` among them, for which the run that wrote ``path`` may have left files.

    Empty where it is not there or is nothing of ours.
    """
    try:
        with path.open(encoding="utf-8") as file:
            run = _run_from(json.loads(file.readline(_LONGEST_LINE)))
        names = [board.name for board in run.boards]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [WITHOUT_BOARD, *(name for name in names if Path(name).name == name)]


def _run_from(table: Mapping[str, Any]) -> RunRecord:
    if table["schema"] != SCHEMA:
        raise ValueError(f"schema {table['schema']!r}; this version reads {SCHEMA!r}")
    boards = tuple(PlannedBoard(**board) for board in table["boards"])
    return RunRecord(**{**table, "boards": boards})


def _loaded(line: str) -> Any:
    """The JSON in a line, without half characters, which no file and no database can hold."""
    table = json.loads(line)
    return _without_halves(table) if _HALF.search(line) else table


def _without_halves(value: Any) -> Any:
    if isinstance(value, dict):
        return {sendable(key): _without_halves(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_halves(entry) for entry in value]
    return sendable(value) if isinstance(value, str) else value


def _read_line(path: str, number: int, line: str, parse: Any) -> Any:
    try:
        return parse(_loaded(line))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}, line {number}: not a record of a run: {type(error).__name__}: {error}"
        ) from None
