"""Runs of many days, made by hand: written as --rknpu-report would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
from compare.make import processes, timed
from report.samples import RUN, result

from pytest_rknpu.report.results import FILE_NAME, Result, Results, ResultsWriter
from pytest_rknpu.verdict import Outcome

FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
VERSIONS = {"bsp": "Debian 12", "driver": "0.9.8", "runtime": "2.3.0", "toolkit": "2.3.2"}


def run(day: int, *tests: Result, **changes: Any) -> Results:
    """The run of a day, with an id that sorts by it."""
    started = FIRST + timedelta(days=day)
    record = replace(
        RUN,
        run_id=f"{started:%Y%m%dT%H%M%SZ}-{day:06x}",
        started=started.isoformat(timespec="seconds"),
        **changes,
    )
    return Results(record, tests, torn=False)


def shown(outcome: Outcome = Outcome.PASS, name: str = "x", **changes: Any) -> Result:
    """A result of SYNC-01 on rk-one; versions are added to `VERSIONS`."""
    versions = {**VERSIONS, **changes.pop("versions", {})}
    board = changes.get("board", "rk-one")
    nodeid = f"suites/sync/test_a.py::test_{name}[{board}]"
    return result(**{"outcome": outcome, "nodeid": nodeid, "versions": versions, **changes})


def latency(median: float, seed: int = 0, **changes: Any) -> Result:
    """A LAT-01 result: 5 processes of 200 runs."""
    versions = {**VERSIONS, **changes.pop("versions", {})}
    return timed(processes(np.random.default_rng(seed), median), versions=versions, **changes)


def write(folder: Path, results: Results, *, ended: bool = True) -> Path:
    """The report folder of a run; without its end it has no JUnit file."""
    (folder / "junit").mkdir(parents=True)
    writer = ResultsWriter(folder / FILE_NAME, results.run)
    for one in results.tests:
        writer.write(one)
    writer.close()
    if ended:
        (folder / "junit" / "rk-one.xml").write_text("<testsuites/>")
    return folder


def write_all(folder: Path, runs: Sequence[Results]) -> Path:
    """A folder with a report folder for each run."""
    for number, one in enumerate(runs):
        write(folder / f"report-{number}", one)
    return folder
