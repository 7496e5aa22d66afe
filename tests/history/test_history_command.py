"""`rknpu history`: what it says, and its exit codes."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from history.many_runs import latency, run, shown, write, write_all

from pytest_rknpu.verdict import Outcome

P, F = Outcome.PASS, Outcome.FAIL


@pytest.fixture
def months(tmp_path: Path) -> Path:
    """Runtime 2.3.2 breaks SYNC-01 and slows runs down, 2.4.0 mends it; an emulated board never fails."""
    runs = []
    for day, runtime in enumerate(("2.3.0", "2.3.0", "2.3.2", "2.3.2", "2.4.0")):
        versions = {"runtime": runtime}
        broken = runtime == "2.3.2"
        runs.append(
            run(
                day,
                shown(F if broken else P, versions=versions),
                shown(P, "other", versions=versions, requirement=("MEM-01",)),
                shown(P, "soft", versions=versions, board="emu-one", evidence="emulator"),
                latency(2.4 if broken else 2.0, day, versions=versions),
            )
        )
    return write_all(tmp_path / "ci", runs)


def test_it_says_which_version_broke_it_and_which_mended_it(rknpu, months: Path) -> None:
    answer = rknpu("history", "ci")
    assert answer.code == 0
    text = answer.out
    assert "5 runs, 2026-01-01 to 2026-01-05 (5 new)" in text
    hardware, _, software = text.partition("emu-one (rk3588, emulator)")
    assert "SYNC-01: failed first in 20260103T000000Z-000002; passes again" in hardware
    assert "passed last in 20260102T000000Z-000001: runtime 2.3.0 -> 2.3.2" in hardware
    assert "again since 20260105T000000Z-000004: BSP Debian 12; driver 0.9.8; runtime 2.4.0" in hardware
    assert "MEM-01" not in hardware
    assert "p50 moved last in 20260105T000000Z-000004" in hardware
    assert "says nothing about silicon" in software
    assert "nothing failed, nothing is flaky" in software


def test_json_has_all_of_it(rknpu, months: Path) -> None:
    table = json.loads(rknpu("history", "ci", "--json").out)
    assert [one["run_id"][:8] for one in table["runs"]] == [f"2026010{day}" for day in range(1, 6)]
    board = table["boards"][0]
    assert (board["board"], board["evidence"]) == ("rk-one", "hardware")
    (found,) = board["breaks"]
    assert found["differs"] == {"runtime": {"before": "2.3.0", "after": "2.3.2"}}
    assert found["last_pass"]["run_id"] == table["runs"][1]["run_id"]
    assert found["passes_again"]["run_id"] == table["runs"][4]["run_id"]
    assert found["first_failure"]["message"] == "because of fail"
    sets = [(one["versions"]["runtime"], one["requirements"]["SYNC-01"]) for one in board["versions"]]
    assert sets == [
        ("2.3.0", {"outcome": "pass", "deciding": 2, "runs": 2}),
        ("2.3.2", {"outcome": "fail", "deciding": 2, "runs": 2}),
        ("2.4.0", {"outcome": "pass", "deciding": 1, "runs": 1}),
    ]
    p50 = next(one for one in board["latency"] if one["quantile"] == 0.5)
    assert [point["samples"] for point in p50["points"]] == [1000] * 5
    assert [one["run_id"] for one in p50["moved"]] == [table["runs"][place]["run_id"] for place in (2, 4)]
    assert all(point["at_least_ms"] <= point["value_ms"] <= point["at_most_ms"] for point in p50["points"])


def test_kinds_of_evidence_are_never_in_one_line(rknpu, tmp_path: Path) -> None:
    """A board of the same name that was emulated first, and is silicon now."""
    write_all(
        tmp_path / "ci",
        [
            run(0, shown(P, evidence="emulator"), latency(9.0, evidence="emulator")),
            run(1, shown(F), latency(2.0)),
        ],
    )
    table = json.loads(rknpu("history", "ci", "--json").out)
    assert [(one["evidence"], len(one["breaks"])) for one in table["boards"]] == [
        ("hardware", 1),
        ("emulator", 0),
    ]
    assert table["boards"][0]["breaks"][0]["last_pass"] is None
    assert not table["regressed"]
    assert all(len(line["points"]) == 1 for one in table["boards"] for line in one["latency"])


def test_boards_of_a_pool_are_told_apart(rknpu, tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(0, shown(P, ran_on="lab-1")), run(1, shown(F, ran_on="lab-2"))])
    table = json.loads(rknpu("history", "ci", "--json").out)
    assert [(one["ran_on"], len(one["breaks"]), len(one["flaky"])) for one in table["boards"]] == [
        ("lab-1", 0, 0),
        ("lab-2", 1, 0),
    ]


def test_flaky_tests_are_found_within_equal_versions_only(rknpu, tmp_path: Path) -> None:
    runs = [run(day, shown(F if day in (2, 5) else P, seed=day % 2)) for day in range(8)]
    runs.append(run(8, shown(F, versions={"driver": "0.9.9"})))
    runs.append(run(9, shown(F, versions={"driver": "0.9.9"}), plugin="0.2.0"))
    write_all(tmp_path / "ci", runs)
    answer = rknpu("history", "ci")
    assert "FLAKY SYNC-01: fail 2, pass 6; does not pass in 3.19 % to 65.1 %" in answer.out
    (found,) = json.loads(rknpu("history", "ci", "--json").out)["boards"][0]["flaky"]
    assert (found["attempts"], found["not_passed"]) == (8, 2)
    assert (found["differing_seeds"], found["seeds"]) == (2, 2)
    assert found["versions"]["driver"] == "0.9.8"


def test_an_inconclusive_latency_is_shown_as_such(rknpu, tmp_path: Path) -> None:
    write_all(
        tmp_path / "ci",
        [run(0, latency(2.0)), run(1, latency(3.0, outcome=Outcome.INCONCLUSIVE)), run(2, latency(2.0))],
    )
    answer = rknpu("history", "ci")
    assert "1 inconclusive or disturbed, compared with nothing" in answer.out
    assert "moved last" not in answer.out


def test_nothing_reaches_the_terminal_that_it_would_obey(rknpu, tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(0, shown(P)), run(1, shown(F, versions={"bsp": "a\x1b[2J\u202eb"}))])
    assert "BSP Debian 12 -> a?[2J?b" in rknpu("history", "ci").out


def test_filters(rknpu, months: Path) -> None:
    board = rknpu("history", "ci", "--board", "emu-*").out
    assert "rk-one" not in board
    requirement = rknpu("history", "ci", "--requirement", "mem-*").out
    assert "SYNC-01" not in requirement
    assert "latency" not in requirement
    assert "latency" in rknpu("history", "ci", "--requirement", "LAT-01").out
    unknown = rknpu("history", "ci", "--board", "nope")
    assert (unknown.code, "there are emu-one, rk-one" in unknown.err) == (2, True)
    assert rknpu("history", "ci", "--requirement", "FOO-*").code == 2


def test_exit_codes(rknpu, tmp_path: Path) -> None:
    write(tmp_path / "ci" / "a", run(0, shown(P)))
    assert rknpu("history", "ci", "--fail-on-regression").code == 0
    write(tmp_path / "ci" / "b", run(1, shown(F)))
    assert rknpu("history", "ci").code == 0
    failed = rknpu("history", "ci", "--fail-on-regression")
    assert failed.code == 1
    assert "REGRESSED SYNC-01: began to fail in the newest run" in failed.out
    write(tmp_path / "ci" / "c", run(2, shown(F)))  # it fails as before: nothing got worse
    assert rknpu("history", "ci", "--fail-on-regression").code == 0
    write(tmp_path / "ci" / "d", run(3, shown(P)), ended=False)
    cut = rknpu("history", "ci", "--fail-on-regression")
    assert cut.code == 3
    assert f"LEFT OUT {Path('ci/d/results.jsonl')}: unfinished" in cut.out


def test_what_regressed_is_told_once_and_first(rknpu, tmp_path: Path) -> None:
    """It was told as REGRESSED and as STILL FAILS, behind the boards on which nothing failed."""
    sound = {"board": "a-sound", "nodeid": "suites/sync/test_a.py::test_x[a-sound]"}
    for when, outcome in enumerate((P, P, F)):
        write(tmp_path / "ci" / str(when), run(when, shown(P, **sound), shown(outcome)))
    said = rknpu("history", "ci").out
    assert said.count("REGRESSED") == 1
    assert "STILL FAILS" not in said
    assert said.index("rk-one (") < said.index("a-sound (")
    write(tmp_path / "ci" / "3", run(3, shown(P, **sound), shown(F)))
    assert "STILL FAILS after 2 runs" in rknpu("history", "ci").out


def test_tests_without_a_board_are_told_where_one_fails(rknpu, tmp_path: Path) -> None:
    own = {"board": "", "nodeid": "suites/versions/test_a.py::test_x"}
    for when, outcome in enumerate((P, F)):
        write(tmp_path / "ci" / str(when), run(when, shown(), shown(outcome, **own)))
        assert ("no board" in rknpu("history", "ci").out) == (outcome == F)


def test_regressions_of_one_requirement_are_told_together(rknpu, tmp_path: Path) -> None:
    """A driver that breaks one thing turns dozens of tests red."""
    names = [f"suites/sync/test_a.py::test_x[rk-one-{number}]" for number in range(30)]
    for when, outcome in enumerate((P, F)):
        results = [shown(outcome, nodeid=name) for name in names]
        write(tmp_path / "ci" / str(when), run(when, *results))
    said = rknpu("history", "ci", "--html", "page.html").out
    assert said.count("REGRESSED") == 1
    assert "and 29 more tests" in said
    assert (tmp_path / "page.html").read_text().count("began to fail") == 1
    assert len(json.loads(rknpu("history", "ci", "--json").out)["boards"][0]["regressions"]) == 30


def test_a_regression_weighs_more_than_what_was_left_out(rknpu, tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(0, shown(P)), run(1, shown(F))])
    write(tmp_path / "ci" / "d", run(3, shown(P)), ended=False)
    assert rknpu("history", "ci", "--fail-on-regression").code == 1


def test_a_board_that_the_newest_run_has_not_keeps_its_own_newest(rknpu, tmp_path: Path) -> None:
    other = {"board": "rk-two", "nodeid": "suites/sync/test_a.py::test_x[rk-two]"}
    write_all(tmp_path / "ci", [run(0, shown(P)), run(1, shown(F)), run(2, shown(P, **other))])
    assert rknpu("history", "ci", "--fail-on-regression").code == 1
    assert rknpu("history", "ci", "--fail-on-regression", "--board", "rk-two").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to read"),
        (("--database", "gone.sqlite"), "nothing to read"),
        (("gone",), "gone: is not there"),
        (("empty",), "no run was found"),
        (("broken",), "Left out: broken/results.jsonl"),
        (("there.sqlite",), "give it as --database"),
    ],
)
def test_what_cannot_be_read(rknpu, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.jsonl").write_text("nothing\n")
    write(tmp_path / "ci", run(0, shown()))
    rknpu("history", "ci", "--database", "there.sqlite")
    answer = rknpu("history", *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert not (tmp_path / "gone.sqlite").exists()


def test_a_database_remembers_what_is_gone(rknpu, months: Path) -> None:
    first = rknpu("history", "ci", "--database", "h.sqlite")
    assert first.code == 0
    (months / "report-0" / "results.jsonl").unlink()
    again = rknpu("history", "--database", "h.sqlite")
    assert again.code == 0
    assert again.out.splitlines()[1:] == first.out.splitlines()[1:]
    assert "4 files read earlier" in rknpu("history", "ci", "--database", "h.sqlite").out


def test_the_documentation_names_what_the_json_has(rknpu, tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(0, shown(P), latency(2.0)), run(1, shown(F), latency(2.0))])
    table = json.loads(rknpu("history", "ci", "--json").out)
    text = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text.partition("## JSON")[2], re.MULTILINE))
    (board,) = table["boards"]
    assert all(f"`{key}`" in text for key in (*table, *board))
    assert set(told) == {key for key, value in board.items() if isinstance(value, list)} - {"runs"}
    for key, words in told.items():
        first = {**board[key][0], **board[key][0].get("points", [{}])[0]}
        assert {f"`{name}`" for name in first} <= set(re.findall(r"`\w+`", words)), key


def test_the_query_of_the_documentation_works(rknpu, tmp_path: Path) -> None:
    write_all(tmp_path / "ci", [run(0, shown(P)), run(1, shown(F), shown(F, "other"))])
    rknpu("history", "ci", "--database", "h.sqlite")
    text = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
    (query,) = re.findall(r'^ *sqlite3 history.sqlite "(.*)"$', text, re.MULTILINE)
    with sqlite3.connect(tmp_path / "h.sqlite") as connection:
        assert connection.execute(query).fetchall() == [("20260102T000000Z-000001", 2)]


def test_the_command_line_stays_light() -> None:
    """Neither matplotlib nor scipy.stats is needed to read a filled database."""
    import subprocess
    import sys

    program = (
        "import sys; from pytest_rknpu.cli.history import read_history; import pytest_rknpu.history.text\n"
        "print([name for name in ('matplotlib', 'scipy.stats', 'jinja2', 'pydantic') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"
