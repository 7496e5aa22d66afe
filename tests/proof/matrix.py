"""``kills.json``: which test catches which fault, as it was last computed in full."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.proof.catalogue import CATALOGUE, TOOLCHAIN, VENDOR, Seeded
from tests.proof.emulated import kills_of
from tests.proof.toolchain_faults import TOOLCHAIN_FAULTS, Kills

PATH = Path(__file__).with_name("kills.json")


def stored() -> dict[str, Kills]:
    """Fault -> requirement -> test function -> outcome."""
    found: dict[str, Kills] = _document()["kills"]
    return found


def clean_runs() -> Mapping[str, int]:
    """``runs`` and ``alarms`` of the last full count of clean runs."""
    found: Mapping[str, int] = _document()["clean"]
    return found


def write(kills: Mapping[str, Kills], clean: Mapping[str, int]) -> None:
    """Store what was computed in full."""
    PATH.write_text(json.dumps({"clean": clean, "kills": kills}, indent=1) + "\n", encoding="utf-8")


def compute(seeded: Seeded, *, only_named: bool = False) -> Kills:
    """Seed one fault and see who notices."""
    if seeded.layer == TOOLCHAIN:
        return next(fault for fault in TOOLCHAIN_FAULTS if fault.name == seeded.name).kills()
    if seeded.layer == VENDOR:
        raise ValueError("faults of the vendor-runtime rig are computed by tests/vendor_rig")
    return kills_of(seeded, only_named=only_named)


def compute_all(tell: Callable[[str], None]) -> dict[str, Kills]:
    """Seed every fault, one after the other."""
    found = {}
    for number, seeded in enumerate(CATALOGUE.values(), start=1):
        found[seeded.name] = compute(seeded)
        missed = sorted(set(seeded.requirements) - set(found[seeded.name]))
        words = f"SURVIVES {', '.join(missed)}" if missed else ", ".join(found[seeded.name])
        tell(f"{number}/{len(CATALOGUE)} {seeded.name}: {words}")
    return found


def problems(seeded: Seeded, computed: Kills, expected: Kills) -> list[str]:
    """What is wrong with a fault's kills, computed for its own requirements, against the stored ones."""
    found = [f"survives {id}" for id in seeded.requirements if id not in computed]
    for id, tests in computed.items():
        for test, outcome in tests.items():
            if expected.get(id, {}).get(test) is None:
                found.append(f"unexpected: {test} of {id} ends {outcome}")
    for id in seeded.requirements:
        for test in expected.get(id, {}):
            if test not in computed.get(id, {}):
                found.append(f"{test} of {id} does not catch it any more")
    return found


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return document
