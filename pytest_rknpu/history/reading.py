"""One file with a run, read whole; what is damaged or unfinished is refused in words."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.report.bundle import is_bundle, read_bundle
from pytest_rknpu.report.results import FILE_NAME, Results, parse_results
from pytest_rknpu.report.timed import timed_runs

_JUNIT = "junit"
_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class RunRead:
    """A run that came to its end. ``started`` is in UTC, ``digest`` the SHA-256 of its results.jsonl."""

    results: Results
    started: str
    digest: str

    @property
    def moment(self) -> int:
        """Its start, in seconds since 1970."""
        return int(datetime.fromisoformat(self.started).timestamp())


def read_run_file(path: Path) -> RunRead:
    """Read a results.jsonl or an archive.

    Raises ConfigurationError that names the file and what is wrong: unreadable, damaged, changed after it was
    packed, cut off, or its run did not come to its end.
    """
    data, ended = _from_bundle(path) if is_bundle(path) else _from_file(path)
    results = parse_results(data.decode("utf-8", "replace"), str(path))
    if results.torn:
        raise ConfigurationError(f"{path}: unfinished: its last line is cut off, the run was killed")
    if not ended:
        raise ConfigurationError(
            f"{path}: unfinished: the run wrote no JUnit file, so it goes on or was killed before its end"
        )
    _check_record(path, results)
    return RunRead(results, _in_utc(path, results.run.started), hashlib.sha256(data).hexdigest())


def _from_file(path: Path) -> tuple[bytes, bool]:
    """The bytes, and whether the run ended: a report folder has an empty folder for JUnit until then."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    junit = path.parent / _JUNIT
    started_only = path.name == FILE_NAME and junit.is_dir() and not any(junit.glob("*.xml"))
    return data, not started_only or _has_no_test(data)


def _from_bundle(path: Path) -> tuple[bytes, bool]:
    bundle = read_bundle(path)
    data = bundle.files.get(FILE_NAME)
    if data is None:
        raise ConfigurationError(f"{path}: has no {FILE_NAME}")
    if bundle.manifest["files"].get(FILE_NAME) != hashlib.sha256(data).hexdigest():
        raise ConfigurationError(f"{path}: {FILE_NAME} was changed after it was packed")
    ended = any(name.startswith(f"{_JUNIT}/") for name in bundle.files)
    return data, ended or _has_no_test(data)


def _has_no_test(data: bytes) -> bool:
    """The line of the run alone: for such a run there is no JUnit file to write."""
    return data.count(b"\n") == 1


def _check_record(path: Path, results: Results) -> None:
    run = results.run
    for key in ("run_id", "plugin", "effort", "started"):
        if not isinstance(getattr(run, key), str):
            raise ConfigurationError(f"{path}, line 1: {key} is {getattr(run, key)!r:.60} and no text")
    for number, test in enumerate(results.tests, start=2):
        if not 0 <= test.seed <= _LARGEST_SEED:
            raise ConfigurationError(f"{path}, line {number}: seed {test.seed} is not in [0, 2**63)")
    try:
        for _ in timed_runs(test for test in results.tests if test.samples):
            pass
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _in_utc(path: Path, started: str) -> str:
    try:
        moment = datetime.fromisoformat(started.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError):  # OverflowError: before the first year, or after the last, in UTC
        raise ConfigurationError(f"{path}, line 1: started is {started!r:.60}, no ISO 8601 time") from None
