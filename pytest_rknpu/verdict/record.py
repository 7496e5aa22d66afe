"""What one test writes down beside its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat

from pytest_rknpu.errors import HarnessError

Value = int | float | str | bool


@dataclass(frozen=True)
class Measurement:
    """A named figure. ``unit`` is "" for a plain count or word; a float that JSON cannot hold is a string."""

    name: str
    value: Value
    unit: str


@dataclass(frozen=True)
class Samples:
    """Raw samples of one kind, in the order in which they were taken, one tuple per process."""

    name: str
    unit: str
    processes: tuple[tuple[int, ...], ...]


@dataclass
class ItemRecord:
    """The notebook of one test: suites write to it through `measure` and `note`, reports read it.

    ``requirements`` are the ids that the test shows, ``seed`` is that of its random choices (derived from the
    run's seed and the node id, so that the same command replays it).
    """

    nodeid: str
    requirements: tuple[str, ...]
    seed: int
    expects_runtime_errors: bool = False
    measurements: list[Measurement] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runtime_errors: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def measure(self, name: str, value: SupportsFloat | str | bool, unit: str = "") -> None:
        """Write down a figure. NumPy scalars are taken too; infinities and NaN are kept as words.

        Raises HarnessError where the name is empty or taken, or the value is not one figure.
        """
        if not name:
            raise HarnessError("a measurement needs a name")
        if any(known.name == name for known in self.measurements):
            raise HarnessError(f"measurement {name!r} is there already; use one name per figure")
        self.measurements.append(Measurement(name, _plain(name, value), unit))

    def keep_samples(self, name: str, processes: Sequence[Sequence[int]], unit: str) -> None:
        """Write down raw samples, whole numbers, those of each process apart: comparisons of runs need them.

        Raises HarnessError where the name is empty or taken.
        """
        if not name or any(known.name == name for known in self.samples):
            raise HarnessError(f"samples need a name of their own, not {name!r}")
        self.samples.append(Samples(name, unit, tuple(tuple(samples) for samples in processes)))

    def note(self, text: str) -> None:
        """Write down a sentence that a reader of the result should know."""
        self.notes.append(text)

    def runtime_logged(self, error_lines: Sequence[str]) -> None:
        """Write down error lines of the runtime's log; unless expected, they fail the test (VER-05)."""
        self.runtime_errors.extend(error_lines)


def _plain(name: str, value: object) -> Value:
    """A value that JSON holds, of plain Python type."""
    if isinstance(value, (bool, int, str)):
        return value
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, float):
        try:
            value = item()  # NumPy's scalars and arrays of one element
        except ValueError:
            raise HarnessError(f"measurement {name!r} is an array; measure one figure at a time") from None
        if isinstance(value, (bool, int, str)):
            return value
    if not isinstance(value, SupportsFloat):
        raise HarnessError(
            f"measurement {name!r} is a {type(value).__name__}; give a number, a word or a bool"
        )
    number = float(value)
    return number if math.isfinite(number) else str(number)
