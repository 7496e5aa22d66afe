"""What no document settles turns nothing red: boards that are sound in another way, and older runtimes."""

from __future__ import annotations

import pytest

from pytest_rknpu.emulator import FAULTS
from tests.faults.conftest import RunSuites

SUITES = ("sync", "memory", "errors", "versions")
CHOICES = [fault.name for fault in FAULTS.values() if fault.layer == "choice"]


def board(soc: str, **keys: object) -> str:
    lines = [f'name = "other-{soc}"', f'soc = "{soc}"', 'runtime = "emulator"']
    return "\n".join(["[[board]]", *lines, *(f"{key} = {value!r}" for key, value in keys.items()), ""])


# C2 is 16, 8 and 16; the last has 32-bit contexts, no copying API and no other core.
@pytest.mark.parametrize("soc", ["rk3588", "rk3566", "rv1106"])
def test_boards_that_choose_otherwise_raise_no_alarm(run_suites: RunSuites, soc: str) -> None:
    run = run_suites(board(soc, faults=CHOICES), "--rknpu-effort", "quick", suites=SUITES)
    assert run.exit_code == 0, run.text[-8000:]
    assert {record["outcome"] for record in run.records} == {"pass", "skip"}


@pytest.mark.parametrize("runtime", ["1.5.2", "1.6.0"])
def test_older_runtimes_fail_nothing(run_suites: RunSuites, runtime: str) -> None:
    """They lack functions and ignore the flush flags: some things cannot be shown, none is wrong."""
    run = run_suites(board("rk3588", runtime_version=runtime), "--rknpu-effort", "quick", suites=SUITES)
    assert {record["outcome"] for record in run.records} <= {"pass", "skip", "inconclusive"}, run.text[-8000:]
    for record in run.with_outcome("inconclusive"):
        assert "insensitive" in record["message"], record
    for record in run.with_outcome("skip"):
        assert record["message"]
