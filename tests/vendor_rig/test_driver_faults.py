"""Each fault of the driver is caught by the requirement that faults.toml names, through the vendor's runtime.

By default those that differ most; with ``RKNPU_TEST_FULL=1`` all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.vendor_rig.conftest import FULL, MakeBoard, RunSuites
from tests.vendor_rig.parts import HERE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class DriverFault:
    """A table of faults.toml."""

    name: str
    what: str
    requirements: list[str]
    settings: Mapping[str, str]
    test: str
    outcome: str
    quick: bool = False


FAULTS = [DriverFault(**table) for table in tomllib.loads((HERE / "faults.toml").read_text())["fault"]]


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=fault.name) for fault in FAULTS if fault.quick or FULL]
)
def test_the_fault_is_caught(board: MakeBoard, run_suites: RunSuites, fault: DriverFault) -> None:
    run = run_suites(board("rk3588", dict(fault.settings)), fault.test, "--rknpu-effort=quick")
    caught = {
        each for record in run.records if record["outcome"] == fault.outcome for each in record["requirement"]
    }
    assert set(fault.requirements) & caught, run.text[-6000:]
    assert run.exit_code != 0


def test_the_table_is_told_in_the_documentation() -> None:
    page = (HERE.parents[1] / "docs" / "vendor-rig.md").read_text()
    assert [fault.name for fault in FAULTS if f"`{fault.name}`" not in page] == []
