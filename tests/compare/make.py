"""Runs to compare, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report.samples import RUN, result

from pytest_rknpu.report.results import FILE_NAME, Result, Results, ResultsWriter
from pytest_rknpu.verdict import Measurement, Samples

Doubles = NDArray[np.float64]
CORE = "RKNN_NPU_CORE_0"


def processes(
    random: np.random.Generator,
    median: float = 2.0,
    *,
    spread: float = 0.01,
    between: float = 0.0,
    count: int = 5,
    runs: int = 200,
) -> list[Doubles]:
    """Log-normal runs in ms; processes differ by ``between``, both relative standard deviations."""
    own = between * random.standard_normal((count, 1))
    return list(median * np.exp(spread * random.standard_normal((count, runs)) + own))


def timed(times: Sequence[Doubles], model: str = "digits_cnn", mask: str = CORE, **changes: Any) -> Result:
    """A LAT-01 result with these runs (ms, by process)."""
    board = changes.get("board", "rk-one")
    measured = (Measurement("model", model, ""), Measurement("core mask", mask, ""))
    whole = tuple(tuple(int(value) for value in np.rint(one * 1e6)) for one in times)
    return result(
        **{
            "requirement": ("LAT-01",),
            "nodeid": f"suites/latency/test_budgets.py::test_runs[{board}-{model}-{mask}]",
            "measurements": (*measured, *changes.pop("measurements", ())),
            "samples": (Samples("run", "ns", whole),),
            **changes,
        }
    )


def run_of(*tests: Result, torn: bool = False, **changes: Any) -> Results:
    """A run with these tests."""
    return Results(replace(RUN, **changes), tests, torn)


def write(folder: Path, run: Results) -> Path:
    """The run as a report folder."""
    folder.mkdir(parents=True)
    writer = ResultsWriter(folder / FILE_NAME, run.run)
    for test in run.tests:
        writer.write(test)
    writer.close()
    return folder
