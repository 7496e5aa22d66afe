"""`rknpu suggest-budgets --json`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_rknpu.report.results import Results
    from pytest_rknpu.report.suggestion import Suggestion

FORMAT = 1
"""Counted up when a key changes its meaning or goes."""


def suggestion_json(results: Results, suggestions: Iterable[Suggestion], margin: float, evidence: str) -> str:
    """What the ``[[budget]]`` tables would say; its keys are those of docs/command-line.md."""
    document = {
        "format": FORMAT,
        "run_id": results.run.run_id,
        "started": results.run.started,
        "evidence": evidence,
        "margin": margin,
        "cut_off": results.torn,
        "suggestions": [
            {**vars(one.place), "budgets": one.figures, "no_times": list(one.reasons)} for one in suggestions
        ],
    }
    return json.dumps(document, indent=2)
