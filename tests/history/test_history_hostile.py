"""`rknpu history` of files that were not written for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from history.many_runs import latency, run, shown, write

from pytest_rknpu.report.results import FILE_NAME
from pytest_rknpu.verdict import Outcome

HALF = "\ud800x"
Lines = list[dict[str, Any]]


def _measured(name: str) -> Callable[[Lines], None]:
    def edit(lines: Lines) -> None:
        others = [one for one in lines[2]["measurements"] if one["name"] != name]
        lines[2]["measurements"] = [*others, {"name": name, "value": HALF, "unit": ""}]

    return edit


#: Where a half character can stand, which neither SQLite nor a file in UTF-8 takes.
HALVES: dict[str, Callable[[Lines], None]] = {
    "run_id": lambda lines: lines[0].update(run_id=HALF),
    "plugin": lambda lines: lines[0].update(plugin=HALF),
    "effort": lambda lines: lines[0].update(effort=HALF),
    "message": lambda lines: lines[1].update(message=HALF),
    "requirement": lambda lines: lines[1].update(requirement=[HALF]),
    "versions": lambda lines: lines[1].update(versions={HALF: HALF}),
    "nodeid": lambda lines: lines[1].update(nodeid=HALF),
    "board": lambda lines: lines[1].update(board=HALF),
    "disturbed by": _measured("disturbed by"),
    "model": _measured("model"),
}


def edited(folder: Path, edit: Callable[[Lines], None]) -> Path:
    file = write(folder, run(1, shown(Outcome.FAIL), latency(2.0))) / FILE_NAME
    lines: Lines = [json.loads(line) for line in file.read_text().splitlines()]
    edit(lines)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize("place", HALVES)
def test_half_characters_stop_nothing(rknpu, tmp_path: Path, place: str) -> None:
    edited(tmp_path / "ci", HALVES[place])
    answer = rknpu("history", "ci", "--html", "page.html", "--json")
    assert answer.code == 0, answer.err
    json.loads(answer.out)
    assert "ud800x" in (tmp_path / "page.html").read_text() + answer.out
    assert rknpu("report", "ci").code == 0


def test_a_folder_whose_name_is_no_text_is_read_once(rknpu, tmp_path: Path) -> None:
    write(tmp_path / os.fsdecode(b"n\xff"), run(1, shown()))
    assert "(1 new)" in rknpu("history", ".", "--database", "h.sqlite", "--html", "page.html").out
    assert "(0 new, 1 file read earlier)" in rknpu("history", ".", "--database", "h.sqlite").out


@pytest.mark.parametrize("started", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_start_that_no_utc_time_is_for_leaves_the_run_out(rknpu, tmp_path: Path, started: str) -> None:
    edited(tmp_path / "ci", lambda lines: lines[0].update(started=started))
    write(tmp_path / "good", run(2, shown()))
    answer = rknpu("history", "ci", "good")
    assert answer.code == 3
    assert f"LEFT OUT ci/results.jsonl, line 1: started is '{started}'" in answer.out


def test_versions_with_more_digits_than_python_counts_are_sorted(rknpu, tmp_path: Path) -> None:
    for day, kernel in enumerate(("10" * 3000, "9", "2³", "010")):
        write(tmp_path / f"ci-{day}", run(day, shown(versions={"kernel": kernel})))
    answer = rknpu("history", ".", "--json")
    assert answer.code == 0, answer.err
    (board,) = json.loads(answer.out)["boards"]
    kernels = [column["versions"]["kernel"] for column in board["versions"]]
    assert kernels == ["2³", "9", "010", "10" * 3000]


def test_pipes_are_passed_over_and_refused_by_name(rknpu_process, tmp_path: Path) -> None:
    write(tmp_path / "ci" / "good", run(1, shown()))
    for name in (FILE_NAME, "more.jsonl", "run.zip"):
        os.mkfifo(tmp_path / "ci" / name)
    assert "1 run" in rknpu_process("history", "ci", timeout=20).stdout
    named = rknpu_process("history", f"ci/{FILE_NAME}", timeout=20)
    assert named.returncode == 2
    assert named.stderr.startswith("rknpu: ci/results.jsonl: is no file; ")


def test_a_database_that_is_no_file_is_refused_before_anything_is_made(rknpu, tmp_path: Path) -> None:
    write(tmp_path / "ci", run(1, shown()))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = sorted(os.listdir(tmp_path))
    for name in ("pipe", "folder"):
        answer = rknpu("history", "ci", "--database", name)
        assert answer.code == 2
        assert answer.err.startswith(f"rknpu: {name}: is no file; ")
    assert sorted(os.listdir(tmp_path)) == before
