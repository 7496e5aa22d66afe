"""`rknpu waivers`: what is accepted, until when, and what a run made of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timezone
from pathlib import Path

from pytest_rknpu.report.results import FILE_NAME, read_results
from pytest_rknpu.waivers import Standing, State, WaiversFile, standings

_DUE_SOON_DAYS = 30
_WANT_ATTENTION = (State.EXPIRED, State.UNEXPECTED_PASS)


def stand(file: WaiversFile, run: Path | None) -> list[Standing]:
    """Each waiver's standing: after ``run`` (report folder or results.jsonl), or by the calendar alone.

    Raises ConfigurationError where the run cannot be read.
    """
    path = run / FILE_NAME if run is not None and run.is_dir() else run
    results = read_results(path).tests if path is not None else ()
    return standings(file.waivers, results, _today())


def want_attention(found: Sequence[Standing]) -> bool:
    """Whether a waiver has had its time."""
    return any(standing.state in _WANT_ATTENTION for standing in found)


def waivers_text(found: Sequence[Standing], judged: bool) -> str:
    """A few lines for each waiver; ``judged`` says that a run was looked at."""
    if not found:
        return "no waivers"
    return "\n\n".join("\n".join(_lines(standing, judged)) for standing in found)


def waivers_json(found: Sequence[Standing], judged: bool) -> str:
    """The same for scripts: a list of tables."""
    return json.dumps([_table(standing, judged) for standing in found], indent=2)


def _lines(standing: Standing, judged: bool) -> list[str]:
    waiver = standing.waiver
    lines = [f"{standing.title}: {_state(standing, judged)}"]
    lines.append(f"  {waiver.outcome} with {waiver.message!r}")
    lines.append(f"  {waiver.reason}{f' ({waiver.link})' if waiver.link else ''}")
    lines += [f"  waived {nodeid}" for nodeid in standing.waived]
    lines += [f"  passes on {board}: remove the waiver, or narrow it" for board in standing.passing]
    if standing.broad:
        lines.append(f"  covered {standing.kinds} different failures: narrow its message")
    return lines


def _state(standing: Standing, judged: bool) -> str:
    expires = standing.waiver.expires
    days = (expires - _today()).days
    end = f"ended on {expires}" if days < 0 else f"until {expires}"
    if 0 <= days <= _DUE_SOON_DAYS:
        end += f", {days} days left"
    known = judged or standing.state is State.EXPIRED
    return f"{standing.state}, {end}" if known else end


def _table(standing: Standing, judged: bool) -> dict[str, object]:
    return {
        "number": standing.number,
        **standing.waiver.model_dump(mode="json"),
        "state": str(standing.state) if judged or standing.state is State.EXPIRED else None,
        "waived": list(standing.waived),
        "passing": list(standing.passing),
        "broad": standing.broad,
    }


def _today() -> date:
    return datetime.now(timezone.utc).date()
