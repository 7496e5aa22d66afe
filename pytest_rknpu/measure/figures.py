"""Did a figure of memory or accuracy get worse from one run to another?

These figures repeat exactly: a runtime reports the same sizes for the same model, and the same inputs give
the same outputs, byte for byte. No chance is in them, so that no statistics are needed: what differs by
more than a stated tolerance has changed, and what has not changed never raises an alarm, however many figures
are compared. The tolerances say what is worth an alarm, as the noise floor does for latency.

Which way is worse is known by name and unit, for the figures that the suites write down; others are listed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

Worse = Literal["memory grew", "accuracy dropped"]

SIZE_GROWTH = 0.02
"""Relative: memory that grew by more is worth an alarm, if it is also by more than ``SIZE_LEAST``."""
SIZE_LEAST = 4096
"""Bytes: a page. Alignment of small models moves by that."""
TOP1_DROP = 0.01
"""Of all samples."""
COSINE_DROP = 0.001
SQNR_DROP_DB = 1.0
SQNR_ENOUGH_DB = 60.0
"""Above it all is the same: an int8 output has less than 50 dB, one that agrees in every bit infinity."""


@dataclass(frozen=True)
class Figure:
    """A figure of a test, as it was measured. ``value`` may be infinite."""

    name: str
    value: float
    unit: str


def worse(before: Figure, after: Figure) -> Worse | None:
    """What is wrong with the change of a figure; None: nothing, or nobody knows which way is worse."""
    if _is_size(after):
        growth = after.value - before.value
        grew = growth > max(SIZE_LEAST, SIZE_GROWTH * before.value)
        return "memory grew" if grew else None
    tolerance = _accuracy_tolerance(after)
    if tolerance is None:
        return None
    drop = _enough(before) - _enough(after)
    return "accuracy dropped" if drop > tolerance * (1 + 1e-9) else None  # 0.9 - 0.89 is a hair above 0.01


_NO_SIZE = re.compile(r"growth of |rounding of |.* by the log, at (least|most)$")


def _is_size(figure: Figure) -> bool:
    return figure.unit == "B" and not _NO_SIZE.match(figure.name)


_TOLERANCES = (
    (re.compile(r"top-1( dense| pruned)?$"), "", TOP1_DROP),
    (re.compile(r"(output \d+ )?cosine\b"), "", COSINE_DROP),
    (re.compile(r"output \d+ sqnr$"), "dB", SQNR_DROP_DB),
)


def _accuracy_tolerance(figure: Figure) -> float | None:
    found = (limit for name, unit, limit in _TOLERANCES if name.match(figure.name) and figure.unit == unit)
    return next(found, None)


def _enough(figure: Figure) -> float:
    return min(figure.value, SQNR_ENOUGH_DB) if figure.unit == "dB" else figure.value


def number_in(value: object) -> float | None:
    """The number that a measurement is, infinity among them (a record keeps it as a word); else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and value not in ("inf", "-inf"):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number
