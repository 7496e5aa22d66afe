"""Sets of versions: what counts as one, in what two differ, and their order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from pytest_rknpu.report.properties import MAIN_VERSIONS, versions_in_brief
from pytest_rknpu.report.results import RunRecord

Versions = Mapping[str, str]

PLUGIN = "pytest-rknpu"
"""Under this name the version of the suites stands beside what the board said."""
NOT_RECORDED = "not recorded"
_WITHOUT = {"faults": "none"}
"""What it means that a key is not there."""

# Of one moment: a governor or a frequency is no version.
_MOMENTARY = frozenset({"clocks", "npu_clock", "ddr_clock", "cpu_clocks"})
_REASONED = ("absent", "probe blocked")
_SHOWN_FIRST = tuple(key for key in MAIN_VERSIONS.values() if key not in _MOMENTARY)
_NUMBER = re.compile(r"([0-9]+)")


def version_set(said: Versions, run: RunRecord) -> dict[str, str]:
    """What a result holds for: the board's versions without clocks, and the suites'.

    Of a version that could not be had the reason is left out: it may be worded otherwise each time.
    """
    found = {key: _without_reason(value) for key, value in said.items() if key not in _MOMENTARY}
    found[PLUGIN] = f"{run.plugin} ({run.git})" if run.git else run.plugin
    return dict(sorted(found.items()))


def _without_reason(value: str) -> str:
    return next((word for word in _REASONED if value.startswith(f"{word} (")), value)


def stored(versions: Versions) -> str:
    """A set of versions as the database holds it."""
    return json.dumps(dict(sorted(versions.items())))


def restored(text: str) -> Versions:
    """And back."""
    found: dict[str, str] = json.loads(text)
    return found


def united(sets: Iterable[Versions]) -> dict[str, str]:
    """What all results of a board said in one run: several values where it changed within the run."""
    values: dict[str, set[str]] = {}
    for versions in sets:
        for key, value in versions.items():
            values.setdefault(key, set()).add(value)
    return {key: " | ".join(sorted(found)) for key, found in sorted(values.items())}


def value_of(versions: Versions, key: str) -> str:
    """A value, or what it means that there is none."""
    return versions.get(key, _WITHOUT.get(key, NOT_RECORDED))


def differences(before: Versions, after: Versions) -> dict[str, tuple[str, str]]:
    """In what two sets differ, with both values; what people look for first comes first."""
    keys = [*_SHOWN_FIRST, *sorted((before.keys() | after.keys()) - set(_SHOWN_FIRST))]
    pairs = {key: (value_of(before, key), value_of(after, key)) for key in keys}
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}


def board_part(versions: Versions) -> Versions:
    """A set without the version of the suites."""
    return {key: value for key, value in versions.items() if key != PLUGIN}


def title_of(key: str) -> str:
    """How people call a version."""
    return next((title for title, known in MAIN_VERSIONS.items() if known == key), key)


def in_brief(versions: Versions) -> str:
    """The main versions in one line."""
    return versions_in_brief(versions) or "no version was recorded"


def order_of(versions: Versions) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Sorts sets of versions as people count: BSP first, then kernel, driver, runtime, toolkit; 2.10 after
    2.9.
    """
    return tuple(_natural(versions.get(key, "")) for key in _SHOWN_FIRST)


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Words and numbers in turn; numbers stay digits, as Python takes a few thousand of them at most."""
    parts = enumerate(_NUMBER.split(text))
    return tuple(_digits(part.lstrip("0")) if place % 2 else (0, 0, part) for place, part in parts if part)


def _digits(number: str) -> tuple[int, int, str]:
    return 1, len(number), number
