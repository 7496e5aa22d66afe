"""A history as JSON's own types. Shape: docs/history.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rknpu.history.collecting import Collected
from pytest_rknpu.history.overview import BoardHistory, History
from pytest_rknpu.history.queries import RunAt, Unsteady
from pytest_rknpu.history.timeline import Break, Seen, Turned
from pytest_rknpu.history.trends import Point, Trend, steps

SCHEMA = "pytest-rknpu/history-1"


def history_json(history: History, collected: Collected) -> str:
    """The whole of it, nothing cut."""
    table = {
        "schema": SCHEMA,
        "regressed": history.regressed,
        "runs": [_run(run) for run in history.runs],
        "left_out": [{"path": one.path, "reason": one.reason} for one in collected.left_out],
        "boards": [_board(history.runs, board) for board in history.boards],
    }
    return json.dumps(table, indent=1)


def _run(run: RunAt) -> dict[str, Any]:
    return {"run_id": run.run_id, "started": run.started, "plugin": run.plugin, "effort": run.effort}


def _board(runs: Sequence[RunAt], board: BoardHistory) -> dict[str, Any]:
    return {
        "board": board.board.name or None,
        "soc": board.board.soc or None,
        "evidence": board.board.evidence or None,
        "ran_on": board.board.ran_on or None,
        "runs": [runs[place].run_id for place in board.runs],
        "versions": [
            {
                "versions": dict(column.versions),
                "runs": [runs[place].run_id for place in column.runs],
                "requirements": {
                    id: {"outcome": str(outcome), "deciding": deciding, "runs": there}
                    for id, (outcome, deciding, there) in column.cells.items()
                },
            }
            for column in board.columns
        ],
        "breaks": [_break(runs, one) for one in board.breaks],
        "regressions": [_turned(runs, one) for one in board.regressions],
        "flaky": [_flaky(one) for one in board.flaky],
        "latency": [_trend(runs, trend) for trend in board.trends],
    }


def _break(runs: Sequence[RunAt], one: Break) -> dict[str, Any]:
    return {
        "requirement": one.requirement or None,
        "tests": list(one.tests),
        "last_pass": _seen(runs, one.span.last_pass),
        "first_failure": _seen(runs, one.span.first_failure),
        "failures": one.span.failures,
        "passes_again": _seen(runs, one.span.passes_again),
        "differs": _differs(one.differs),
    }


def _turned(runs: Sequence[RunAt], one: Turned) -> dict[str, Any]:
    return {
        "test": one.test,
        "requirements": list(one.requirements),
        "turn": one.turn,
        "before": _seen(runs, one.before),
        "after": _seen(runs, one.after),
        "differs": _differs(one.differs),
    }


def _seen(runs: Sequence[RunAt], seen: Seen | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    return {
        "run_id": runs[seen.run].run_id,
        "started": runs[seen.run].started,
        "outcome": str(seen.outcome),
        "versions": dict(seen.versions),
        "message": seen.message,
    }


def _differs(differs: Mapping[str, tuple[str, str]]) -> dict[str, dict[str, str]]:
    return {key: {"before": before, "after": after} for key, (before, after) in differs.items()}


def _flaky(one: Unsteady) -> dict[str, Any]:
    found = one.flaky
    return {
        "test": one.test,
        "requirements": list(one.requirements),
        "versions": dict(one.versions),
        "outcomes": {str(outcome): count for outcome, count in found.outcomes.items()},
        "attempts": found.attempts,
        "not_passed": found.not_passed,
        "at_least": found.bounds[0],
        "at_most": found.bounds[1],
        "seeds": found.seeds,
        "differing_seeds": found.differing_seeds,
        "changes": found.changes,
        "verdict_changes": found.verdict_changes,
    }


def _trend(runs: Sequence[RunAt], trend: Trend) -> dict[str, Any]:
    return {
        "test": trend.test,
        "model": trend.model,
        "core_mask": trend.core_mask or None,
        "quantile": trend.quantile,
        "points": [_point(runs, point) for point in trend.points],
        "moved": [
            {"run_id": runs[step.after.run].run_id, "relative": step.relative} for step in steps(trend.points)
        ],
    }


def _point(runs: Sequence[RunAt], point: Point) -> dict[str, Any]:
    return {
        "run_id": runs[point.run].run_id,
        "outcome": str(point.outcome),
        "value_ms": point.value_ms,
        "at_least_ms": point.lower_ms,
        "at_most_ms": point.upper_ms,
        "samples": point.samples,
        "processes": point.processes,
        "disturbed": point.disturbed,
    }
