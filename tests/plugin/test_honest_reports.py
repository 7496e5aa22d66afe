"""What a report must not be talked out of: by options, other plugins, other runs, odd texts, a full disk."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from plugin.project import Project
from plugin.schemas import results_validator, validate_junit

GREEN = "@pytest.mark.requirement('SYNC-01')\ndef test_passes(npu):\n    pass\n"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan"])
def test_a_test_that_was_never_called_shows_nothing(project: Project, option: str, workers: int) -> None:
    project.tests(GREEN)
    run = project.run("--rknpu-report", "out", option, workers=workers)
    run.stdout.no_fnmatch_line("*requirements shown*")
    run.stdout.no_fnmatch_line("SYNC-01*pass*")
    assert not (project.pytester.path / "out/results.jsonl").exists()


def test_two_runs_do_not_write_into_one_report(project: Project) -> None:
    project.tests(
        GREEN
        + """
def test_meanwhile(pytester):
    run = pytester.runpytest_subprocess("--rknpu-report", REPORT)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: *out/results.jsonl: another run is writing to it; give *folder*"])
"""
    )
    out = project.pytester.path / "out"
    source = project.pytester.path / "test_it.py"
    source.write_text(source.read_text().replace("REPORT", repr(str(out))))
    assert project.run("-p", "pytester", "--rknpu-report", "out").ret == 0
    assert set(project.results()[1]) == {"test_passes[alpha]", "test_passes[beta]"}
    assert {path.name for path in (out / "junit").iterdir()} == {"alpha.xml", "beta.xml"}
    assert project.run("--rknpu-report", "out", "-k", "passes").ret == 0  # it is free again


RUN_AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):  # as plugins for flaky tests do it
    for last in (False, True):
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if report.failed and not last:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            return True
    return True
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_running_a_test_again_does_not_hide_its_failure(project: Project, workers: int) -> None:
    conftest = project.pytester.path / "conftest.py"
    conftest.write_text(conftest.read_text() + RUN_AGAIN)
    project.tests(
        """
tried = []

@pytest.mark.requirement("SYNC-01")
def test_it(npu, record):
    record.measure("tried", len(tried))
    tried.append(1)
    assert len(tried) == 2, "the first time"
"""
    )
    run = project.run("--board", "alpha", "--rknpu-report", "out", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["SYNC-01 *fail 1/2", "not a pass: 1 above did not pass, and running*again*"])
    lines = (project.pytester.path / "out/results.jsonl").read_text().splitlines()[1:]
    first, second = map(json.loads, lines)
    assert (first["outcome"], second["outcome"]) == ("fail", "pass")
    assert [result["measurements"][0]["value"] for result in (first, second)] == [0, 1]
    assert (first["notes"], second["notes"]) == ([], ["attempt 2: another plugin had the test run again"])


@pytest.mark.parametrize("workers", [0, 2])
def test_whatever_a_test_writes_down_the_run_goes_on(project: Project, workers: int) -> None:
    project.tests(
        r"""
import enum
class Kind(enum.IntEnum):
    ONE = 1
WRITES = [
    lambda record: record.note(object()),
    lambda record: record.note("half a character: \udcff, and \x1b[2J"),
    lambda record: record.measure("kind", Kind.ONE),
    lambda record: record.measure("much", 10**5000),
    lambda record: record.measure("half", "\udcff"),
    lambda record: record.keep_samples("few", [bytearray(b"ab")], "ns"),
    lambda record: record.versions.update(fan=object()),
    lambda record: None,
]

@pytest.mark.parametrize("n", range(len(WRITES)))
def test_it(npu, record, n):
    WRITES[n](record)
"""
    )
    run = project.run("--board", "alpha", "--rknpu-report", "out", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.no_fnmatch_line("*INTERNALERROR*")
    results = project.results()[1]
    outcomes = [results[f"test_it[alpha-{n}]"]["outcome"] for n in range(8)]
    assert outcomes == ["pass"] * 3 + ["harness"] + ["pass"] * 4
    for result in results.values():
        results_validator().validate(result)
    suite = validate_junit((project.pytester.path / "out/junit/alpha.xml").read_text())
    assert suite.get("tests") == "8"


def test_a_message_cannot_paint_the_terminal(project: Project) -> None:
    project.tests("def test_it(npu):\n    pytest.fail('log: \\x1b[2J\\x07 end')\n")
    run = project.run("--board", "alpha", "--tb", "no")
    assert "  log: ?[2J? end" in run.outlines


def test_half_a_junit_file_is_not_left(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    open_path = Path.open

    class Full(io.BytesIO):
        """A file that gets its first 100 bytes, and then no more."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self._path = path

        def write(self, data: Any) -> int:
            self._path.write_bytes(data[:100])
            raise OSError(28, "No space left on device")

    def fill_up(self: Path, mode: str = "r", *others: Any, **more: Any) -> Any:
        unfinished = self.suffix == ".unfinished" and mode == "xb"
        return Full(self) if unfinished else open_path(self, mode, *others, **more)

    project.tests(GREEN)
    assert project.run("--rknpu-report", "out", "--board", "alpha").ret == 0
    monkeypatch.setattr(Path, "open", fill_up)
    run = project.run("--rknpu-report", "out")
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["INCOMPLETE REPORT: junit: No space left on device"])
    assert list((project.pytester.path / "out/junit").iterdir()) == []


def test_files_of_other_tools_stay_where_they_are(project: Project) -> None:
    project.tests(GREEN)
    junit = project.pytester.path / "out/junit"
    junit.mkdir(parents=True)
    (junit / "of-another-tool.xml").write_text("<testsuites/>")
    for boards in (["alpha", "beta"], ["beta"]):
        chosen = [word for board in boards for word in ("--board", board)]
        assert project.run("--rknpu-report", "out", *chosen).ret == 0
        names = {f"{board}.xml" for board in boards}
        assert {path.name for path in junit.iterdir()} == {"of-another-tool.xml", *names}


@pytest.mark.parametrize("line", ["", "[]", "{", '{"schema": "x"}', "\udcff", '{"a": ' + "[" * 100_000])
def test_what_is_no_report_is_no_obstacle(project: Project, line: str) -> None:
    project.tests(GREEN)
    out = project.pytester.mkdir("out")
    (out / "results.jsonl").write_bytes(line.encode("utf-8", "surrogateescape"))
    assert project.run("--rknpu-report", "out").ret == 0
    assert len(project.results()[1]) == 2
