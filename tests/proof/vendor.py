"""The faults of the vendor-runtime rig: ``tests/vendor_rig/faults.toml``, whose own tests seed each."""

from __future__ import annotations

from pathlib import Path

from pytest_rknpu.inventory.document import parse
from tests.proof.doctored import Kills

_PATH = Path(__file__).parents[1] / "vendor_rig" / "faults.toml"


def vendor_faults() -> dict[str, tuple[str, Kills]]:
    """Fault -> (what is broken, requirement -> test function -> outcome)."""
    found = {}
    for fault in parse(_PATH)["fault"]:
        test = fault["test"].rpartition("::")[2].partition("[")[0]
        kills = {id: {test: fault["outcome"]} for id in fault["requirements"]}
        found[fault["name"]] = (fault["what"], kills)
    return found
