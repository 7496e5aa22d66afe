"""What ``RKNN.eval_memory`` says of a connected board: a dict in bytes, or the table that it prints.

The dict has ``weight_memory``, ``internal_memory``, ``other_memory`` and ``total_memory`` (Toolkit2 API
reference); a blank for the underscore, and ``total_model_allocation``, have been seen too. The printed table
has two decimals of KiB or MiB; up to 1.5 it said ``Total Weight Memory`` and ``Total Internal Tensor Memory``
and left out the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from pytest_rknpu.errors import ToolkitError

_UNITS: Mapping[str, int] = {"B": 1, "Bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_FIGURE = r":?\s*(\d+(?:\.\d+)?)\s*(B|Bytes|KiB|MiB|GiB)\b"
#: Longer names first: "Total Memory" is no part of "Total Weight Memory", "Weight Memory" is.
_PRINTED: Mapping[str, re.Pattern[str]] = {
    "weight": re.compile(r"Weight Memory" + _FIGURE),
    "internal": re.compile(r"Internal Tensor Memory" + _FIGURE),
    "other": re.compile(r"Other Memory" + _FIGURE),
    "total": re.compile(r"Total Memory" + _FIGURE),
    "model": re.compile(r"current model size is" + _FIGURE),
}
_KEYS: Mapping[str, tuple[str, ...]] = {
    "weight": ("weight_memory", "total_weight_memory", "total_weight_allocation"),
    "internal": ("internal_memory", "internal_tensor_memory", "total_internal_allocation"),
    "other": ("other_memory",),
    "total": ("total_memory", "total_model_allocation"),
}


@dataclass(frozen=True)
class MemoryUse:
    """Bytes. ``other`` and ``model`` (size of the .rknn file) are None where they were not said.

    ``resolution`` is how far each number may be off: 0 for a dict, half of the last printed decimal for a
    table.
    """

    weight: int
    internal: int
    total: int
    other: int | None = None
    model: int | None = None
    resolution: int = 0


def parse_memory(report: str | Mapping[str, Any]) -> MemoryUse:
    """Read what ``eval_memory`` returned or printed. ToolkitError: weight, internal or total is missing."""
    return _from_text(report) if isinstance(report, str) else _from_mapping(report)


def _from_mapping(report: Mapping[str, Any]) -> MemoryUse:
    given = {re.sub(r"\W+", "_", str(key).strip().lower()): value for key, value in report.items()}
    sizes = {
        field: int(size)
        for field, keys in _KEYS.items()
        if (size := next((given[key] for key in keys if _is_size(given.get(key))), None)) is not None
    }
    missing = [field for field in ("weight", "internal", "total") if field not in sizes]
    if missing:
        raise ToolkitError(
            f"eval_memory returned no {' and no '.join(missing)} memory; its keys: "
            f"{', '.join(map(str, report)) or 'none'}"
        )
    return MemoryUse(**sizes)


def _from_text(text: str) -> MemoryUse:
    sizes: dict[str, int] = {}
    resolution = 0
    for field, pattern in _PRINTED.items():
        found = pattern.search(text)
        if found is not None:
            unit = _UNITS[found[2]]
            decimals = len(found[1].partition(".")[2])
            sizes[field] = round(float(found[1]) * unit)
            resolution = max(resolution, -(-unit // (2 * 10**decimals)) if unit > 1 else 0)
    missing = [field for field in ("weight", "internal", "total") if field not in sizes]
    if missing:
        raise ToolkitError(f"eval_memory printed no {' and no '.join(missing)} memory: {_shortened(text)}")
    return MemoryUse(**sizes, resolution=resolution)


def _is_size(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < inf


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 200 else words[:200] + "..."
