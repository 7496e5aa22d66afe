"""What ``RKNN.eval_perf`` says of a connected board, in the forms that it has had.

- without ``perf_debug``: ``Total Time(us): 7140`` and ``FPS: 140.06``, one line or two;
- with it, toolkit 1.x lines of RKNPU2: a layer table whose cycles are three columns, and
  ``Total Operator Elapsed Time(us)``;
- with it, 2.x: cycles as ``DDR/NPU/Total``, and ``Total Operator Elapsed Per Frame Time(us)``;
- a dict, as the docstring of 2.5.0 has it (the API reference says string).

``fix_freq=True`` puts lists of frequencies before it. Rows are split on white space: the columns shift with
long operator names, and ``MacUsage`` may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from pytest_rknpu.errors import ToolkitError

_TOTAL = re.compile(r"Total (?:Operator Elapsed (?:Per Frame )?)?Time\(us\):\s*(\d+(?:\.\d+)?)")
_FPS = re.compile(r"FPS:\s*(\d+(?:\.\d+)?)")
_FREQUENCIES = re.compile(
    r"^\s*(CPU|NPU|DDR) Current Frequency List:\s*\n((?:\s*-\s*\d+[ \t]*\n?)+)", re.MULTILINE
)
_HEADER = re.compile(r"\bID\s+OpType\s+DataType\s+Target\s+.*FullName")
_NUMBERED = re.compile(r"^\s*\d+\s+\S")
_CYCLES = r"(?:-?\d+/-?\d+/-?\d+|-?\d+\s+-?\d+\s+-?\d+)"
_ROW = re.compile(
    r"^\s*(?P<id>\d+)\s+(?P<operator>\S+)\s+(?P<dtype>\S+)\s+(?P<target>CPU|GPU|NPU)\s+\S+\s+\S+\s+"
    rf"{_CYCLES}\s+(?P<time>\d+(?:\.\d+)?)(?:\s+(?P<rest>.*))?$"
)
_NUMBER = re.compile(r"^[\d./%-]+$")
#: These move data between host and NPU; every model has them.
_TRANSFERS = frozenset({"InputOperator", "OutputOperator"})
_TOTAL_KEYS = frozenset(
    {
        "totaltime",
        "totaltimeus",
        "totaloperatorelapsedtimeus",
        "totaloperatorelapsedperframetimeus",
        "totaloperatorelapsedperframetime",
    }
)


@dataclass(frozen=True)
class LayerTime:
    """One row of the layer table. ``name`` is the toolkit's FullName, "" where the row has none."""

    id: int
    operator: str
    dtype: str
    target: str
    time_us: float
    name: str


@dataclass(frozen=True)
class Performance:
    """Time of one frame in microseconds; ``layers`` only with ``perf_debug``, which makes frames slower.

    ``frequencies`` are the numbers as printed, by CPU (kHz), NPU and DDR (Hz).
    """

    total_us: float
    fps: float | None = None
    layers: tuple[LayerTime, ...] = ()
    frequencies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def cpu_operators(self) -> tuple[str, ...]:
        """``operator name`` of each layer that ran on the CPU, moving inputs and outputs apart (ACC-06)."""
        return tuple(
            f"{layer.operator} {layer.name}".rstrip()
            for layer in self.layers
            if layer.target == "CPU" and layer.operator not in _TRANSFERS
        )


def parse_performance(report: str | Mapping[str, Any]) -> Performance:
    """Read what ``eval_perf`` printed or returned.

    ToolkitError: no total time in it (an empty report is what RV1103 and RV1106 give with ``perf_debug``), or
    a layer table whose rows are not as known.
    """
    return _from_text(report) if isinstance(report, str) else _from_mapping(report)


def _from_text(text: str) -> Performance:
    total = _TOTAL.search(text)
    if total is None:
        raise ToolkitError(f"eval_perf reported no total time; it said: {_shortened(text)}")
    fps = _FPS.search(text)
    return Performance(
        total_us=float(total[1]),
        fps=float(fps[1]) if fps else None,
        layers=tuple(_layers(text)),
        frequencies={
            found[1]: tuple(int(number) for number in re.findall(r"\d+", found[2]))
            for found in _FREQUENCIES.finditer(text)
        },
    )


def _layers(text: str) -> Iterator[LayerTime]:
    inside = False
    for line in text.splitlines():
        if _HEADER.search(line):
            inside = True
        elif line.lstrip().startswith("Total "):
            inside = False
        elif inside and _NUMBERED.match(line):
            yield _layer(line)


def _layer(line: str) -> LayerTime:
    row = _ROW.match(line)
    if row is None:
        raise ToolkitError(f"eval_perf's layer table has a row of an unknown layout: {line.strip()}")
    last = (row["rest"] or "").split()[-1:]
    name = last[0] if last and not _NUMBER.match(last[0]) and last[0] != "\\" else ""
    return LayerTime(int(row["id"]), row["operator"], row["dtype"], row["target"], float(row["time"]), name)


def _from_mapping(report: Mapping[str, Any]) -> Performance:
    """A dict: the total under any of the names it has been printed by, else the text in one of its values."""
    numbers = {_plain(key): value for key, value in report.items() if _is_time(value)}
    total = next((float(value) for key, value in numbers.items() if key in _TOTAL_KEYS), None)
    if total is not None:
        fps = numbers.get("fps")
        return Performance(total_us=total, fps=None if fps is None else float(fps))
    for value in report.values():
        if isinstance(value, Mapping) or (isinstance(value, str) and _TOTAL.search(value)):
            return parse_performance(value)
    raise ToolkitError(f"eval_perf returned no total time; its keys: {', '.join(map(str, report)) or 'none'}")


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < inf


def _plain(key: object) -> str:
    return re.sub(r"[^a-z]", "", str(key).lower())


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 200 else words[:200] + "..."
