"""`rknpu waivers`, with and without a run."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pytest_rknpu.cli.app import run

TODAY = datetime.now(timezone.utc).date()
RUN = {
    "schema": "pytest-rknpu/results-1",
    "run_id": "20261130T000000Z-abcdef",
    "plugin": "1",
    "git": None,
    "command": "pytest",
    "seed": 1,
    "effort": "normal",
    "started": "2026-11-30T00:00:00+00:00",
    "host": "h",
    "python": "3.11",
    "pytest": "8.4",
    "boards": [],
    "waivers": None,
}


def result(outcome: str, waived_by: object = None) -> dict[str, object]:
    return {
        "requirement": ["SYNC-07"],
        "nodeid": "test_it.py::test_it[alpha]",
        "board": "alpha",
        "soc": "rk3588",
        "evidence": "hardware",
        "outcome": outcome,
        "versions": {},
        "seed": 1,
        "measurements": [],
        "notes": [],
        "message": "lost at 7",
        "duration_s": 0.0,
        "samples": [],
        "waived_by": waived_by,
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, 10)
    return tmp_path


def write(folder: Path, days: int) -> None:
    (folder / "waivers.toml").write_text(
        '[[waiver]]\nrequirement = "SYNC-07"\nsoc = "rk3588"\nmessage = "lost"\nreason = "old driver"\n'
        f"expires = {TODAY + timedelta(days=days)}\n",
        encoding="utf-8",
    )


def run_with(folder: Path, **test: object) -> None:
    report = folder / "report"
    report.mkdir(exist_ok=True)
    lines = [RUN, result(**test)]  # type: ignore[arg-type]
    (report / "results.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )


def test_it_lists_what_is_accepted_and_how_long(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["waivers"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("waiver 1 (SYNC-07, SoC rk3588): until ")
    assert "10 days left" in shown
    assert "old driver" in shown


def test_an_expired_one_wants_attention(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, -1)
    assert run(["waivers"]) == 1
    assert "expired, ended on" in capsys.readouterr().out


def test_a_run_shows_what_each_is_worth(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by = {
        "number": 1,
        "original": "fail",
        "message": "lost at 7",
        "reason": "old driver",
        "link": None,
        "expires": str(TODAY),
    }
    run_with(folder, outcome="waived", waived_by=by)
    assert run(["waivers", "waivers.toml", "--run", "report", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    assert (table["state"], table["waived"]) == ("used", ["test_it.py::test_it[alpha]"])

    run_with(folder, outcome="pass")
    assert run(["waivers", "--run", "report"]) == 1
    assert "passes on alpha" in capsys.readouterr().out

    run_with(folder, outcome="fail")
    assert run(["waivers", "--run", "report/results.jsonl"]) == 0
    assert "unused" in capsys.readouterr().out


def test_a_missing_file_or_run_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["waivers", "gone.toml"]) == 2
    assert "gone.toml" in capsys.readouterr().err
    assert run(["waivers", "--run", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
