"""Results to write, made by hand."""

from __future__ import annotations

from typing import Any

from pytest_rknpu.report.results import SCHEMA, PlannedBoard, Result, RunRecord
from pytest_rknpu.verdict import Measurement, Outcome

RUN = RunRecord(
    schema=SCHEMA,
    run_id="20260101T000000Z-0a1b2c",
    plugin="0.1.0",
    git=None,
    command="pytest suites -n 2",
    seed=7,
    effort="normal",
    started="2026-01-01T00:00:00+00:00",
    host="lab",
    python="3.11.7",
    pytest="9.0.0",
    boards=(PlannedBoard("rk-one", "rk3588", "hardware"),),
)


def result(**changes: Any) -> Result:
    """A passing result, with changes."""
    table: dict[str, Any] = {
        "requirement": ("SYNC-01",),
        "nodeid": "suites/sync/test_a.py::test_x[rk-one-64]",
        "board": "rk-one",
        "soc": "rk3588",
        "evidence": "hardware",
        "outcome": Outcome.PASS,
        "versions": {"kernel": "6.1.75", "driver": "0.9.8", "runtime": "2.3.2"},
        "seed": 2**63 - 1,
        "measurements": (Measurement("iterations", 300, ""),),
        "notes": (),
        "message": "",
        "duration_s": 0.25,
    }
    outcome = changes.get("outcome", Outcome.PASS)
    if outcome is not Outcome.PASS:
        table["message"] = f"because of {outcome}"
    return Result(**{**table, **changes})
