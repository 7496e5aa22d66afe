"""The terminal and the report folder: what a run says, where it writes, and what it does when it cannot."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin.project import Project
from plugin.schemas import validate_junit

Run = Callable[..., pytest.RunResult]

MIXED = """
@pytest.mark.requirement("SYNC-01")
def test_passes(npu):
    pass

@pytest.mark.requirement("SYNC-02")
def test_fails(npu):
    raise ConformanceFailure("line 7 is stale\\nexpected 01\\nactual 00\\nand so on")

@pytest.mark.requirement("MEM-01")
def test_skips(npu):
    pytest.skip("no log")
"""
GREEN = "@pytest.mark.requirement('SYNC-01')\ndef test_passes(npu):\n    pass\n"


def test_the_header_names_plugin_seed_and_boards(project: Project) -> None:
    project.boards(
        '[[board]]\nname = "old"\nsoc = "rk3588s"\nruntime = "emulator"\nruntime_version = "1.6.0"\n'
        'driver_version = "0.9.2"\n[[board]]\nname = "sim-rk3576"\nsoc = "rk3576"\nruntime = "simulator"\n'
    )
    project.tests(GREEN)
    project.run("--rknpu-seed", "5").stdout.fnmatch_lines(
        [
            "rknpu: *, seed 5, effort normal, run *",
            "rknpu: board old         rk3588, emulator, runtime 1.6.0, driver 0.9.2",
            "rknpu: board sim-rk3576  rk3576, simulator",
        ]
    )


def test_the_header_is_shown_once_and_not_when_quiet(project: Project) -> None:
    project.pytester.makeini("[pytest]\nrknpu_boards = boards.toml\n")
    project.tests(GREEN)
    for arguments in ((), ("--board", "alpha"), ("--board", "alpha", "-n", "2")):
        run = project.pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
        assert (run.stdout.str() + run.stderr.str()).count("board alpha") == 1, arguments
    quiet = project.pytester.runpytest_subprocess("-p", "no:cacheprovider", "-q")
    assert "board alpha" not in quiet.stdout.str()


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_the_summary(project: Project, one_board: Run, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    project.tests(MIXED)
    run = one_board()
    run.stdout.fnmatch_lines(
        [
            "requirement  alpha",
            "SYNC-01      pass",
            "SYNC-02      fail",
            "MEM-01       skip",
            "",
            "fail: the board broke*",
            "alpha: rk3588, evidence emulator; 1 of 3 requirements shown in software, which says nothing*",
            "  BSP fake 1; kernel 6.1; driver emulated 0.9.8; runtime emulated 2.3.2",
            "FAIL SYNC-02 test_it.py::test_fails[[]alpha[]]",
            "  line 7 is stale",
            "  expected 01",
            "  actual 00",
            "  ... 1 more lines",
            "  again: pytest * --rknpu-seed *",
            f"report: {project.pytester.path}/out",
        ]
    )
    assert "conforman" not in run.stdout.str().lower().replace("conformancefailure", "")


def test_a_run_without_boards_has_no_summary(project: Project) -> None:
    project.tests("def test_it():\n    pass\n")
    project.run().stdout.no_fnmatch_line("*=== rknpu ===*")


def test_the_replay_command_replays(project: Project) -> None:
    project.tests(
        """
@pytest.mark.requirement("SYNC-02")
@pytest.mark.parametrize("word", ["plain", "it's a [test]"])
def test_it(npu, record, effort, word):
    assert False, f"seed {npu.seed}, {record.seed}, {effort}"
"""
    )
    (project.pytester.path / "suites").mkdir()
    (project.pytester.path / "test_it.py").rename(project.pytester.path / "suites" / "test_it.py")
    run = project.run("--board", "a*", "--rknpu-effort", "quick")
    commands = re.findall(r"again: (.*)", run.stdout.str())
    messages = re.findall(r"^E +AssertionError: (seed .*)$", run.stdout.str(), re.MULTILINE)
    assert len(commands) == 2
    assert len(set(messages)) == 2
    for command, message in zip(commands, messages, strict=True):
        words = shlex.split(command)
        assert words[0] == "pytest"
        again = project.pytester.runpytest_inprocess(*words[1:], "-p", "no:hypothesispytest")
        again.assert_outcomes(failed=1)
        assert message in again.stdout.str()


def test_effort_scales_rounds(project: Project) -> None:
    project.tests(
        """
def test_it(effort):
    print("rounds", effort.rounds(300), effort.rounds(3), str(effort))
"""
    )
    for effort, said in (
        ("quick", "30 1 quick"),
        ("normal", "300 3 normal"),
        ("thorough", "3000 30 thorough"),
    ):
        project.run("-s", "--rknpu-effort", effort).stdout.fnmatch_lines([f"*rounds {said}*"])


@pytest.mark.parametrize("workers", [0, 2])
def test_faults_are_named_everywhere(project: Project, workers: int) -> None:
    from pytest_rknpu.emulator import FAULTS

    fault = next(iter(FAULTS))
    project.tests(
        "@pytest.mark.requirement('SYNC-01')\ndef test_it(npu):\n    assert False, npu.session.board.faults\n"
    )
    run = project.run("--rknpu-fault", fault, "--rknpu-report", "out", "--board", "alpha", workers=workers)
    run.stdout.fnmatch_lines(
        [f"*FAULTS SEEDED: {fault}", f"*; FAULTS SEEDED {fault}", f"*again: *--rknpu-fault {fault}"]
    )
    result = project.results()[1]["test_it[alpha]"]
    assert (result["versions"]["faults"], result["evidence"]) == (fault, "emulator")
    assert fault in result["message"]


def test_faults_are_for_emulated_boards_only(project: Project) -> None:
    from pytest_rknpu.emulator import FAULTS

    project.boards('[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n')
    project.tests("def test_it(board):\n    pass\n")
    run = project.run("--rknpu-fault", next(iter(FAULTS)))
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --rknpu-fault *: board sim is not emulated*"])


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unwritable_report_folder_is_refused_before_a_board_is_touched(
    project: Project, workers: int
) -> None:
    (project.pytester.path / "occupied").write_text("a file")
    project.tests(GREEN)
    run = project.run("--rknpu-report", "occupied/below", workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert "occupied/below" in " ".join(run.errlines)
    assert project.opened() == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_disk_that_fills_up_reddens_the_run_and_does_not_end_it(project: Project, one_board: Run) -> None:
    project.tests(
        GREEN
        + """
@pytest.fixture(scope="session", autouse=True)
def full_disk(pytestconfig):
    collector = pytestconfig.pluginmanager.getplugin("rknpu-collector")
    collector._writer._file = open("/dev/full", "w")

@pytest.mark.requirement("SYNC-02")
def test_more(npu):
    pass
"""
    )
    run = one_board()
    run.assert_outcomes(passed=2)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["INCOMPLETE REPORT: results.jsonl: No space left on device"])


def test_files_of_an_older_run_are_not_mixed_in(project: Project) -> None:
    project.tests(GREEN)
    project.run("--rknpu-report", "out")
    junit = project.pytester.path / "out/junit"
    assert {path.name for path in junit.iterdir()} == {"alpha.xml", "beta.xml"}
    project.run("--rknpu-report", "out", "--board", "beta")
    assert {path.name for path in junit.iterdir()} == {"beta.xml"}
    assert set(project.results()[1]) == {"test_passes[beta]"}


def test_collecting_writes_no_report(project: Project) -> None:
    project.tests(GREEN)
    project.run("--rknpu-report", "out", "--collect-only")
    assert not (project.pytester.path / "out").exists()


def test_tests_without_a_board_have_a_place(project: Project) -> None:
    project.tests("@pytest.mark.requirement('MEM-12')\ndef test_plan(record):\n    record.note('ok')\n")
    assert project.run("--rknpu-report", "out").ret == 0
    result = project.results()[1]["test_plan"]
    assert (result["board"], result["soc"], result["evidence"]) == (None, None, None)
    assert result["notes"] == ["ok"]
    assert validate_junit((project.pytester.path / "out/junit/_no-board.xml").read_text()).get("tests") == "1"


def test_the_report_starts_at_the_working_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.tests(GREEN)
    below = Path(project.pytester.mkdir("below"))
    monkeypatch.chdir(below)
    run = project.run_bare("--boards", "../boards.toml", "--rknpu-report", "out", "..")
    assert run.ret == 0
    assert (below / "out/results.jsonl").exists()


SEVEN = """
@pytest.mark.requirement("SYNC-02")
@pytest.mark.parametrize("n", range(7))
def test_it(npu, n):
    raise ConformanceFailure("line 7 is stale\\nexpected 01\\nactual 00\\nand so on")
"""


@pytest.mark.parametrize(
    ("option", "header", "matrix", "legend", "failures", "whole"),
    [
        ("-qq", False, False, False, 0, False),
        ("-q", False, True, False, 5, False),
        ("--color=no", True, True, True, 5, False),
        ("-v", True, True, True, 7, False),
        ("-vv", True, True, True, 7, True),
    ],
)
def test_more_and_less_is_said(
    one_board: Run,
    project: Project,
    option: str,
    header: bool,
    matrix: bool,
    legend: bool,
    failures: int,
    whole: bool,
) -> None:
    project.tests(SEVEN)
    run = one_board(option, "--tb=no")
    text = run.stdout.str()
    assert ("rknpu: board alpha" in text) == header
    assert ("SYNC-02      fail" in text) == matrix
    assert ("fail: the board broke" in text) == legend
    assert text.count("again: ") == failures
    assert ("... and 2 more that did not pass (-v shows them)" in text) == (failures == 5)
    assert ("  and so on" in text) == whole
    assert f"report: {project.pytester.path}/out" in text
    assert "\x1b" not in text
