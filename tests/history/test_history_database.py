"""The database: each run once, nothing read twice, nothing half, whoever else is at it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from history.many_runs import latency, run, shown, write, write_all
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history import HistoryDatabase, collect, overview
from pytest_rknpu.history import collecting as collecting_module
from pytest_rknpu.history.timeline import Seen, spans
from pytest_rknpu.report.bundle import write_bundle
from pytest_rknpu.report.results import FILE_NAME, Results
from pytest_rknpu.verdict import Outcome

P, F = Outcome.PASS, Outcome.FAIL


def runs_in(database: HistoryDatabase) -> list[tuple[str, int]]:
    return [
        (run_id, count)
        for run_id, count in database.rows(
            "SELECT run_id, (SELECT count(*) FROM result WHERE result.run = run.id) FROM run ORDER BY started"
        )
    ]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Three runs with two tests each, in a folder of the fourth level."""
    runs = [run(day, shown(Outcome.PASS, "a"), shown(Outcome.FAIL, "b")) for day in range(3)]
    return write_all(tmp_path / "ci" / "2026", runs).parent


def test_the_same_run_counts_once_wherever_it_lies(reports: Path) -> None:
    shutil.copytree(reports / "2026" / "report-1", reports / "copy")
    write_bundle(reports / "2026" / "report-2", reports / "kept.zip", (), {})
    with HistoryDatabase(None) as database:
        found = collect(database, [reports, reports / "2026" / "report-0" / FILE_NAME])
        assert [count for _, count in runs_in(database)] == [2, 2, 2]
    assert (found.added, found.again, found.left_out) == (3, 3, ())


def test_a_bundle_alone_will_do(reports: Path, tmp_path: Path) -> None:
    write_bundle(reports / "2026" / "report-2", tmp_path / "kept.zip", (), {})
    with HistoryDatabase(None) as database:
        assert collect(database, [tmp_path / "kept.zip"]).added == 1
        assert len(runs_in(database)) == 1


def test_a_bundle_that_was_changed_is_left_out(reports: Path, tmp_path: Path) -> None:
    import zipfile

    archive = tmp_path / "kept.zip"
    write_bundle(reports / "2026" / "report-2", archive, (), {})
    with zipfile.ZipFile(archive) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    files[FILE_NAME] = files[FILE_NAME].replace(b'"fail"', b'"pass"')
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    with HistoryDatabase(None) as database:
        (left_out,) = collect(database, [archive]).left_out
    assert "changed after it was packed" in str(left_out)


def test_what_was_read_is_not_read_again(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "h.sqlite"
    with HistoryDatabase(file) as database:
        collect(database, [reports])
    read: list[Path] = []
    whole = collecting_module.read_run_file
    monkeypatch.setattr(collecting_module, "read_run_file", lambda path: read.append(path) or whole(path))
    write(reports / "new", run(9, shown()))
    with HistoryDatabase(file) as database:
        found = collect(database, [reports])
        assert len(runs_in(database)) == 4
    assert read == [reports / "new" / FILE_NAME]
    assert (found.added, found.unchanged) == (1, 3)


def test_a_folder_that_was_overwritten_adds_its_new_run(reports: Path, tmp_path: Path) -> None:
    file = tmp_path / "h.sqlite"
    with HistoryDatabase(file) as database:
        collect(database, [reports])
    shutil.rmtree(reports / "2026" / "report-0")
    write(reports / "2026" / "report-0", run(8, shown(), latency(2.0)))
    with HistoryDatabase(file) as database:
        assert collect(database, [reports]).added == 1
        assert len(runs_in(database)) == 4  # the run that lay there before is remembered


def test_of_two_copies_the_longer_one_counts(tmp_path: Path) -> None:
    """A copy that was taken while the run went on, then the whole; in either order."""
    whole = run(0, shown(Outcome.PASS, "a"), shown(Outcome.FAIL, "b"), latency(2.0))
    short = replace(whole, tests=whole.tests[:1])
    first, second = write(tmp_path / "1", short), write(tmp_path / "2", whole)
    with HistoryDatabase(None) as database:
        found = collect(database, [first, second])
        assert runs_in(database) == [(whole.run.run_id, 3)]
        assert database.rows("SELECT count(*) FROM latency") == [(3,)]
    assert found.left_out == ()
    with HistoryDatabase(None) as database:
        found = collect(database, [second, first])
        assert runs_in(database) == [(whole.run.run_id, 3)]
    assert "another copy of run" in str(found.left_out[0])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "ended before it began"),
        (b"{}\n", "line 1: not a record of a run"),
        (b"\x00\xff" * 300 + b"\n", "line 1: not a record of a run"),
        (b'{"schema": "pytest-rknpu/results-7"}\n', "this version reads"),
        (b"whole", "its last line is cut off"),
    ],
)
def test_damaged_files_are_named(reports: Path, data: bytes, words: str) -> None:
    damaged = reports / "damaged"
    damaged.mkdir()
    good = (reports / "2026" / "report-0" / FILE_NAME).read_bytes()
    (damaged / FILE_NAME).write_bytes(good[:-9] if data == b"whole" else data)
    with HistoryDatabase(None) as database:
        found = collect(database, [reports])
    assert found.added == 3
    assert words in str(found.left_out[0])
    assert str(found.left_out[0]).count(str(damaged)) == 1


def test_records_that_no_database_can_hold_are_damaged(tmp_path: Path) -> None:
    write(tmp_path / "seed", run(0, shown(seed=2**63)))
    write(tmp_path / "time", run(1, shown()))
    lines = (tmp_path / "time" / FILE_NAME).read_text()
    (tmp_path / "time" / FILE_NAME).write_text(lines.replace("2026-01-02T00:00:00+00:00", "yesterday"))
    broken = latency(2.0)
    write(tmp_path / "samples", run(2, replace(broken, samples=(replace(broken.samples[0], processes=()),))))
    with HistoryDatabase(None) as database:
        found = collect(database, [tmp_path])
        assert runs_in(database) == []
    reasons = " ".join(map(str, found.left_out))
    assert len(found.left_out) == 3
    for words in ("not in [0, 2**63)", "no ISO 8601 time", "not positive numbers"):
        assert words in reasons


def test_half_characters_of_a_board_do_not_stop_it(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", run(0, shown(Outcome.FAIL)))
    text = (folder / FILE_NAME).read_text()
    (folder / FILE_NAME).write_text(text.replace("because of fail", "\\udcff"))
    with HistoryDatabase(None) as database:
        assert collect(database, [folder]).added == 1
        assert database.rows("SELECT message FROM result") == [("\\udcff",)]


def test_an_unfinished_run_is_taken_in_once_it_has_ended(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", run(0, shown()), ended=False)
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        assert "unfinished" in str(collect(database, [folder]).left_out[0])
        (folder / "junit" / "rk-one.xml").write_text("<testsuites/>")
        assert collect(database, [folder]).added == 1


def test_what_is_not_ours_is_passed_over(reports: Path) -> None:
    import zipfile

    (reports / "notes.jsonl").write_text('{"a": 1}\n')
    with zipfile.ZipFile(reports / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    (reports / "broken.zip").write_bytes(b"PK no archive")
    shutil.copy(reports / "2026" / "report-0" / FILE_NAME, reports / "run-of-monday.jsonl")
    with HistoryDatabase(None) as database:
        found = collect(database, [reports])
    assert (found.added, found.again) == (3, 1)
    assert [Path(one.path).name for one in found.left_out] == ["broken.zip"]


def test_runs_are_in_the_order_of_time_whatever_their_names(tmp_path: Path) -> None:
    write(tmp_path / "a", run(5, shown(Outcome.FAIL)))
    write(tmp_path / "b", run(2, shown(Outcome.PASS)))
    with HistoryDatabase(None) as database:
        collect(database, [tmp_path])
        found = overview(database)
    assert [one.day for one in found.runs] == ["2026-01-03", "2026-01-06"]
    assert found.regressed


# Other files, other processes


def test_other_files_are_refused(tmp_path: Path) -> None:
    text, other, newer, folder = (tmp_path / name for name in ("text", "other", "newer", "folder"))
    text.write_text("no database, but long enough to be looked at " * 40)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a(b)")
    HistoryDatabase(newer).__exit__(None, None, None)
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 9")
    folder.mkdir()
    before = text.read_bytes(), other.read_bytes()
    for file, words in ((text, "not a database"), (other, "another program"), (newer, "has schema 9")):
        with pytest.raises(ConfigurationError, match=words):
            HistoryDatabase(file)
    with pytest.raises(ConfigurationError, match="folder"):
        HistoryDatabase(folder)
    assert (text.read_bytes(), other.read_bytes()) == before


def test_two_processes_at_once(tmp_path: Path) -> None:
    """Both make the tables, both take in the same runs: each run is there once, and neither fails."""
    write_all(tmp_path / "ci", [run(day, shown(), latency(2.0, day)) for day in range(12)])
    command = [sys.executable, "-m", "pytest_rknpu.cli", "history", "ci", "--database", "h.sqlite"]
    started = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        assert [count for _, count in runs_in(database)] == [2] * 12
        assert database.rows("PRAGMA integrity_check") == [("ok",)]


def test_a_full_disk_leaves_whole_runs(tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(day, *(shown(P, f"t{n}") for n in range(300))) for day in range(3)])
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        assert collect(database, [tmp_path / "ci" / "report-0"]).added == 1
        ((pages,),) = database.rows("PRAGMA page_count")
        database.rows(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(ConfigurationError, match="disk is full"):
            collect(database, [tmp_path / "ci"])
        database.rows("PRAGMA max_page_count = 100000")
        assert [count for _, count in runs_in(database)] == [300]
        assert collect(database, [tmp_path / "ci"]).added == 2
        assert [count for _, count in runs_in(database)] == [300] * 3


def test_a_killed_process_leaves_whole_runs(tmp_path: Path) -> None:
    """It dies in the transaction of the third run, after the run's own row was written."""
    write_all(tmp_path / "ci", [run(day, shown(), latency(2.0, day)) for day in range(5)])
    program = textwrap.dedent("""
        import os, signal
        from pathlib import Path
        from pytest_rknpu.history import HistoryDatabase, collect, store
        whole, calls = store.rows_of, []
        def dying(*arguments):
            calls.append(1)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(*arguments)
        store.rows_of = dying
        with HistoryDatabase(Path("h.sqlite")) as database:
            collect(database, [Path("ci")])
    """)
    died = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60, check=False)
    assert died.returncode == -9
    with HistoryDatabase(tmp_path / "h.sqlite") as database:
        assert [count for _, count in runs_in(database)] == [2, 2]
        found = collect(database, [tmp_path / "ci"])
        assert [count for _, count in runs_in(database)] == [2] * 5
    assert (found.added, found.unchanged) == (3, 2)


def test_a_folder_that_cannot_be_read_is_named(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so that the system's answer is played."""
    scan = os.scandir

    def refusing(path: str) -> object:
        if Path(path).name == "2026":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with HistoryDatabase(None) as database:
        found = collect(database, [reports])
    assert [str(one) for one in found.left_out] == [f"{reports / '2026'}: Permission denied"]


# Questions that the database answers itself


def flaky_in(folder: Path, runs: list[Results]) -> list[tuple[dict[Outcome, int], int, int, int]]:
    with HistoryDatabase(None) as database:
        collect(database, [write_all(folder, runs)])
        (board,) = overview(database).boards
    return [
        (dict(one.flaky.outcomes), one.flaky.changes, one.flaky.differing_seeds, one.flaky.seeds)
        for one in board.flaky
    ]


@pytest.mark.parametrize(
    ("outcomes", "seeds", "expected"),
    [
        ((P, F, P, P), (7, 7, 7, 7), [({P: 3, F: 1}, 2, 1, 1)]),
        ((P, P, F, F), (7, 7, 7, 7), [({P: 2, F: 2}, 1, 1, 1)]),
        ((P, F, P, F), (1, 2, 1, 2), [({P: 2, F: 2}, 3, 0, 2)]),
        ((P, F, F, F), (1, 1, 2, 2), [({P: 1, F: 3}, 1, 1, 2)]),
        ((P, Outcome.SKIP, P), (1, 1, 1), []),
        ((P, Outcome.SKIP, Outcome.INFRA), (1, 1, 1), [({P: 1, Outcome.INFRA: 1}, 1, 1, 1)]),
        ((F, F), (1, 2), []),
    ],
)
def test_flaky_tests(
    tmp_path: Path,
    outcomes: tuple[Outcome, ...],
    seeds: tuple[int, ...],
    expected: list[tuple[dict[Outcome, int], int, int, int]],
) -> None:
    runs = [
        run(day, shown(outcome, seed=seed))
        for day, (outcome, seed) in enumerate(zip(outcomes, seeds, strict=True))
    ]
    runs.reverse()  # read in another order than they ran in
    assert flaky_in(tmp_path / "ci", runs) == expected


def test_attempts_of_one_run_count_each(tmp_path: Path) -> None:
    assert flaky_in(tmp_path / "ci", [run(0, shown(F), shown(P))]) == [({P: 1, F: 1}, 1, 1, 1)]


def test_what_was_not_tried_is_no_attempt(tmp_path: Path) -> None:
    runs = [run(0, shown(P)), run(1, shown(Outcome.INFRA, tried=False))]
    assert flaky_in(tmp_path / "ci", runs) == []


@given(st.lists(st.lists(st.sampled_from("pFws?"), max_size=2), max_size=9))
def test_the_database_finds_what_all_results_together_show(days: list[list[str]]) -> None:
    """Against the pure function over everything: what the query leaves out makes no difference."""
    letters = {"p": P, "F": F, "w": Outcome.WAIVED, "s": Outcome.SKIP, "?": Outcome.INCONCLUSIVE}
    with tempfile.TemporaryDirectory() as folder, HistoryDatabase(None) as database:
        tests = [[shown(letters[letter]) for letter in day] or [shown(P, "other")] for day in days]
        write_all(Path(folder), [run(day, *own) for day, own in enumerate(tests)])
        if not days:
            return
        collect(database, [Path(folder)])
        found = [
            (
                one.span.first_failure.run,
                one.span.failures,
                one.span.passes_again and one.span.passes_again.run,
            )
            for one in overview(database).boards[0].breaks
        ]
    everything, nth = [], 0
    for day, own in enumerate(days):
        nth += any(letter in "pFw" for letter in own)
        everything += [Seen(day, letters[letter], {}, nth) for letter in own]
    assert found == [
        (one.first_failure.run, one.failures, one.passes_again and one.passes_again.run)
        for one in spans(everything)
    ]
