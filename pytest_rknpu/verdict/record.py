"""What one test writes down beside its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat

from pytest_rknpu.errors import HarnessError

Value = int | float | str | bool
_LARGEST_BITS = 1024
_LOG_LINES, _LOG_LETTERS = 30, 4000


def sendable(text: object) -> str:
    r"""``text`` as a text that can be encoded: what a board sent may hold half characters (``\udcff``)."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


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


@dataclass(frozen=True)
class WaivedBy:
    """The waiver that covers a failure, and what the failure was: ``original`` outcome and ``message``.

    ``number`` is its place in waivers.toml, counted from 1; ``expires`` is its last day in ISO 8601.
    """

    number: int
    original: str
    message: str
    reason: str
    link: str | None
    expires: str


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
    runtime_log: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    waived_by: WaivedBy | None = None

    def anew(self) -> ItemRecord:
        """An empty notebook for the same test."""
        return ItemRecord(self.nodeid, self.requirements, self.seed, self.expects_runtime_errors)

    def measure(self, name: str, value: SupportsFloat | str | bool, unit: str = "") -> None:
        """Write down a figure. NumPy scalars are taken too; infinities and NaN are kept as words.

        Raises HarnessError where the name is empty or taken, or the value is not one figure.
        """
        if not name or not isinstance(name, str):
            raise HarnessError(f"a measurement needs a name, not {name!r}")
        if any(known.name == name for known in self.measurements):
            raise HarnessError(f"measurement {name!r} is there already; use one name per figure")
        self.measurements.append(Measurement(sendable(name), _plain(name, value), sendable(unit)))

    def keep_samples(self, name: str, processes: Sequence[Sequence[int]], unit: str) -> None:
        """Write down raw samples, whole numbers, those of each process apart: comparisons of runs need them.

        Raises HarnessError where the name is empty or taken.
        """
        if not name or any(known.name == name for known in self.samples):
            raise HarnessError(f"samples need a name of their own, not {name!r}")
        plain = tuple(tuple(int(sample) for sample in samples) for samples in processes)
        self.samples.append(Samples(sendable(name), sendable(unit), plain))

    def note(self, text: str) -> None:
        """Write down a sentence that a reader of the result should know."""
        self.notes.append(sendable(text))

    def runtime_logged(self, error_lines: Sequence[str], log: str = "") -> None:
        """Write down error lines of the runtime's log; unless expected, they fail the test (VER-05).

        The end of the whole ``log`` is for whoever looks into a failure.
        """
        self.runtime_errors.extend(error_lines)
        self.runtime_log = sendable("\n".join(log.strip().splitlines()[-_LOG_LINES:])[-_LOG_LETTERS:])


def _plain(name: str, value: object) -> Value:
    """A value that JSON holds, of plain Python type."""
    if isinstance(value, (bool, int, str)):
        return _simple(name, value)
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, float):
        try:
            value = item()  # NumPy's scalars and arrays of one element
        except ValueError:
            raise HarnessError(f"measurement {name!r} is an array; measure one figure at a time") from None
        if isinstance(value, (bool, int, str)):
            return _simple(name, value)
    if not isinstance(value, SupportsFloat):
        raise HarnessError(
            f"measurement {name!r} is a {type(value).__name__}; give a number, a word or a bool"
        )
    number = float(value)
    return number if math.isfinite(number) else str(number)


def _simple(name: str, value: bool | int | str) -> Value:
    """The value itself, of no class derived from those three (an enum, say): links and JSON know none."""
    if isinstance(value, str):
        return sendable(str.__str__(value))
    if isinstance(value, bool):
        return value
    if value.bit_length() > _LARGEST_BITS:
        raise HarnessError(f"measurement {name!r} has {value.bit_length()} bits; that is no figure")
    return int(value)
