"""Words for bytes that differ: where, in which cache line, and both hexdumps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LINE = 64


def describe_mismatch(compared: Mapping[str, Any]) -> str:
    """Text for a saved ``compare`` command with mismatches (docs/command-lists.md)."""
    first = compared["first"]
    head = (
        f"{compared['mismatches']} of {compared['comparisons']} comparisons differ; first in iteration "
        f"{first['iteration']}: {first['differing']} bytes, offsets {_listed(first['offsets'])}, "
        f"cache lines {_listed(first['lines'])}"
    )
    return f"{head}\nexpected {hexdump(first['expected'])}\nactual   {hexdump(first['actual'])}"


def describe_difference(expected: bytes, actual: bytes) -> str:
    """Text for two byte strings compared on the host; empty where they are equal."""
    if expected == actual:
        return ""
    if len(expected) != len(actual):
        return f"{len(actual)} bytes instead of {len(expected)}"
    offsets = [index for index, (a, b) in enumerate(zip(expected, actual, strict=True)) if a != b]
    lines = sorted({offset // _LINE for offset in offsets})
    start = lines[0] * _LINE
    return (
        f"{len(offsets)} of {len(expected)} bytes differ, offsets {_listed(offsets[:16])}, "
        f"cache lines {_listed(lines[:16])}"
        f"\nexpected {hexdump(expected[start : start + _LINE])}"
        f"\nactual   {hexdump(actual[start : start + _LINE])}"
    )


def hexdump(data: bytes) -> str:
    """The bytes in hexadecimal, in groups of eight."""
    return data.hex(" ", 8)


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown}, ..." if len(numbers) > 8 else shown
