"""What a result says of a seeded fault. Who catches which is the matrix of tests/proof."""

from __future__ import annotations

from pytest_rknpu.emulator import FAULTS
from tests.faults.conftest import RunSuites

# The board on which the most requirements apply.
BOARD = '[[board]]\nname = "faulty"\nsoc = "rk3588"\nruntime = "emulator"\n'


def test_a_result_names_board_evidence_fault_and_bytes(run_suites: RunSuites) -> None:
    options = (
        "--rknpu-fault",
        "sync-last-line-missing",
        "--rknpu-effort",
        "quick",
        "--requirement",
        "SYNC-05",
    )
    run = run_suites(BOARD, *options)
    assert run.exit_code == 1, run.text
    failed = run.with_outcome("fail")
    assert failed
    for record in failed:
        assert record["requirement"] == ["SYNC-05"]
        assert record["board"] == "faulty"
        assert record["evidence"] == "emulator"
        assert "sync-last-line-missing" in record["versions"]["faults"]
        for words in ("cache lines", "expected", "actual"):
            assert words in record["message"]


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
