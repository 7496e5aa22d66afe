"""Each seeded fault turns every requirement red that its table names."""

from __future__ import annotations

import pytest

from pytest_rknpu.emulator import FAULTS
from tests.faults.conftest import RunSuites

# The board on which the most requirements apply.
BOARD = '[[board]]\nname = "faulty"\nsoc = "rk3588"\nruntime = "emulator"\n'

VARIANTS = [
    f"{fault.name}:{key}={choice}" if key else fault.name
    for fault in FAULTS.values()
    if fault.requirements  # choices break nothing (test_sound_boards), losses take the board (tests/recovery)
    for key, choices in (fault.parameters or {"": ("",)}).items()
    for choice in choices
]


@pytest.mark.parametrize("variant", VARIANTS)
def test_fault_is_caught(run_suites: RunSuites, variant: str) -> None:
    fault = FAULTS[variant.partition(":")[0]]
    selection = [option for id in fault.requirements for option in ("--requirement", id)]
    run = run_suites(
        BOARD, "--rknpu-fault", variant, "--rknpu-effort", fault.effort, "--rknpu-seed", "1", *selection
    )
    assert run.exit_code == 1, run.text
    failed = {id for record in run.with_outcome("fail") for id in record["requirement"]}
    missed = set(fault.requirements) - failed
    assert not missed, f"{variant} survives {sorted(missed)}\n{run.text}"
    for record in run.with_outcome("fail"):
        assert record["board"] == "faulty"
        assert record["evidence"] == "emulator"
        assert fault.name in record["versions"]["faults"]
        assert record["message"]


def test_every_fault_of_the_issue_is_there() -> None:
    """The table may grow; these must stay."""
    named = {
        "sync-to-device-dropped",
        "sync-from-device-dropped",
        "sync-directions-swapped",
        "sync-bidirectional-one-side",
        "sync-last-line-missing",
        "sync-offset-ignored",
        "late-write-back",
        "stale-previous-frame",
        "internal-overlaps-output",
        "undersized-internal-accepted",
        "weights-scribbled",
        "dup-shares-activations",
        "descriptors-leak",
        "output-incomplete",
        "core-mask-changes-result",
    }
    assert named <= set(FAULTS)
