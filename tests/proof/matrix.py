"""``kills.json``: which test catches which fault, as it was last computed in full."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.proof.catalogue import CATALOGUE, DOCTORED, Seeded
from tests.proof.doctored import Kills
from tests.proof.emulated import kills_of

PATH = Path(__file__).with_name("kills.json")


def stored() -> dict[str, Kills]:
    """Fault -> requirement -> test function -> outcome."""
    found: dict[str, Kills] = _document()["kills"]
    return found


def clean_runs() -> Mapping[str, int]:
    """``runs`` and ``alarms`` of the last full count of clean runs."""
    found: Mapping[str, int] = _document()["clean"]
    return found


def is_full() -> bool:
    """Whether all suites ran with each emulated fault, or the tests of its own requirements alone."""
    return bool(_document()["all_suites"])


def write(kills: Mapping[str, Kills], clean: Mapping[str, int], *, all_suites: bool) -> None:
    """Store what was computed."""
    document = {"all_suites": all_suites, "clean": clean, "kills": kills}
    PATH.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def compute(seeded: Seeded, *, only_named: bool = False) -> Kills:
    """Seed one fault and see who notices."""
    if seeded.name in DOCTORED:
        return DOCTORED[seeded.name].kills()
    return kills_of(seeded, only_named=only_named)


def compute_all(tell: Callable[[str], None], *, only_named: bool) -> dict[str, Kills]:
    """Seed every fault, as many at once as there are processors."""

    def one(seeded: Seeded) -> Kills:
        kills = compute(seeded, only_named=only_named)
        missed = sorted(set(seeded.requirements) - set(kills))
        tell(f"{seeded.name}: " + (f"SURVIVES {', '.join(missed)}" if missed else ", ".join(kills)))
        return kills

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(CATALOGUE, pool.map(one, CATALOGUE.values()), strict=True))


def problems(seeded: Seeded, computed: Kills, expected: Kills) -> list[str]:
    """What is wrong with a fault's kills, computed for its own requirements, against the stored ones."""
    found = [f"survives {id}" for id in seeded.requirements if id not in computed]
    for id, tests in computed.items():
        for test, outcome in tests.items():
            if expected.get(id, {}).get(test) is None and not _is_own_doubt(seeded, id, outcome):
                found.append(f"unexpected: {test} of {id} ends {outcome}")
    for id in seeded.requirements:
        for test in expected.get(id, {}):
            if test not in computed.get(id, {}):
                found.append(f"{test} of {id} does not catch it any more")
    return found


def _is_own_doubt(seeded: Seeded, id: str, outcome: str) -> bool:
    """Timed tests really wait: on a loaded machine one more test of what the fault breaks may doubt."""
    return id in seeded.requirements and outcome == "inconclusive"


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return document
