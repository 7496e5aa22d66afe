"""Which lines of a results.jsonl hold raw samples of a model's runs, and for what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure.conditions import DISTURBED_BY, UNDISTURBED
from pytest_rknpu.report.bundle import is_bundle, read_bundle, results_of
from pytest_rknpu.report.results import FILE_NAME, Result, Results, read_results

Doubles = NDArray[np.float64]

RUNS = "run"
"""The name of the samples of rknn_run, one after the other."""
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class TimedRuns:
    """Samples in ms, one array per process, of one test. ``core_mask`` is None where the SoC has none."""

    result: Result
    model: str
    core_mask: str | None
    processes: tuple[Doubles, ...]

    @property
    def count(self) -> int:
        """How many runs there are in all processes together."""
        return sum(samples.size for samples in self.processes)

    @property
    def what(self) -> str:
        """Model and core mask, in words."""
        return f"{self.model} on {self.core_mask or 'its only core'}"


def timed_runs(results: Iterable[Result]) -> Iterator[TimedRuns]:
    """The tests that timed runs of a model back to back.

    Raises ConfigurationError for samples that are none.
    """
    for result in results:
        values = {one.name: one.value for one in result.measurements}
        if result.board is None or "model" not in values or "core mask" not in values:
            continue
        for samples in result.samples:
            if samples.name == RUNS and samples.unit == "ns":
                mask = str(values["core mask"])
                yield TimedRuns(
                    result=result,
                    model=str(values["model"]),
                    core_mask=None if mask == "none" else mask,
                    processes=_milliseconds(result.nodeid, samples.processes),
                )


def _milliseconds(nodeid: str, processes: tuple[tuple[int, ...], ...]) -> tuple[Doubles, ...]:
    try:
        arrays = tuple(np.array(process, np.float64) / _NS_PER_MS for process in processes)
    except (TypeError, ValueError, OverflowError):
        arrays = ()
    if not arrays or not all(_are_times(one) for one in arrays):
        raise ConfigurationError(f"{nodeid}: its samples are not positive numbers of ns, by process")
    return arrays


def _are_times(samples: Doubles) -> bool:
    return samples.ndim == 1 and samples.size > 0 and bool(((samples > 0) & np.isfinite(samples)).all())


def disturbances(result: Result) -> list[str]:
    """What disturbed a measurement, as it wrote down itself (``session.latency``)."""
    values = [str(one.value) for one in result.measurements if one.name == DISTURBED_BY]
    return [f"{DISTURBED_BY} {value}" for value in values if value != UNDISTURBED]


def read_run(path: Path) -> Results:
    """Read a results.jsonl, or the one in a report folder or bundle. Raises ConfigurationError."""
    if is_bundle(path):
        return results_of(read_bundle(path))
    return read_results(path / FILE_NAME if path.is_dir() else path)
