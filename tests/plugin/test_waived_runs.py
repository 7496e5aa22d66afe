"""Runs with a waivers.toml, on boards that cost nothing: what is waived, and what becomes of the waivers."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from lxml import etree
from plugin.project import Project
from plugin.schemas import properties_of, results_validator

TODAY = datetime.now(timezone.utc).date()
SOON = TODAY + timedelta(days=30)

TESTS = """
@pytest.mark.requirement('SYNC-07')
def test_neighbours(npu):
    if npu.session.board.name == "alpha":
        raise ConformanceFailure('neighbour at 0x40 lost')

@pytest.mark.requirement('SYNC-01')
def test_writes(npu): pass
"""


def waiver(**changed: str) -> str:
    keys = {
        "requirement": '"SYNC-07"',
        "board": '"alpha"',
        "message": "'neighbour at 0x[0-9a-f]+ lost'",
        "reason": '"fixed in driver 0.9.9"',
        "link": '"https://tracker.example/71"',
        "expires": str(SOON),
        **changed,
    }
    return "[[waiver]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


@pytest.fixture
def waived(project: Project) -> Project:
    project.tests(TESTS)
    return project


def write(project: Project, *tables: str) -> None:
    (project.pytester.path / "waivers.toml").write_text("\n".join(tables), encoding="utf-8")


@pytest.mark.parametrize("workers", [0, 2])
def test_the_described_failure_is_waived(waived: Project, workers: int) -> None:
    write(waived, waiver())
    result = waived.run("--rknpu-report", "out", workers=workers)
    assert result.ret == 0
    run, tests = waived.results()
    for record in (run, *tests.values()):
        results_validator().validate(record)
    found = tests["test_neighbours[alpha]"]
    assert found["outcome"] == "waived"
    assert found["waived_by"] == {
        "number": 1,
        "original": "fail",
        "message": "neighbour at 0x40 lost",
        "reason": "fixed in driver 0.9.9",
        "link": "https://tracker.example/71",
        "expires": str(SOON),
    }
    assert tests["test_neighbours[beta]"]["outcome"] == "pass"
    assert len(run["waivers"]) == 64
    result.stdout.no_fnmatch_line("*unused*")


def test_junit_keeps_the_original_outcome(waived: Project) -> None:
    write(waived, waiver())
    waived.run("--rknpu-report", "out", "--junitxml", "own.xml")
    for path in ("out/junit/alpha.xml", "own.xml"):
        cases = etree.parse(str(waived.pytester.path / path)).iter("testcase")
        case = next(case for case in cases if case.get("name") == "test_neighbours[alpha]")
        properties = properties_of(case)
        assert properties["outcome"] == "waived"
        assert properties["original_outcome"] == "fail"
        assert "fixed in driver 0.9.9" in properties["waiver"]
        assert case.find("skipped") is not None


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"message": '"stale line"'}, "another failure"),
        ({"outcome": '"inconclusive"'}, "another failure"),
        ({"expires": str(TODAY - timedelta(days=1))}, "ended on"),
        ({"board": '"beta"'}, None),
        ({"soc": '"rk3576"'}, None),
        ({"versions": '{ driver = "<0.9.8" }'}, None),
        ({"versions": '{ toolkit = ">=0.0.1" }'}, None),
        ({"test": '"test_other.py::*"'}, None),
        ({"requirement": '"SYNC-01"'}, None),
    ],
)
def test_any_other_failure_stays_one(waived: Project, changed: dict[str, str], note: str | None) -> None:
    write(waived, waiver(**changed))
    result = waived.run("--rknpu-report", "out")
    assert result.ret == 1
    found = waived.results()[1]["test_neighbours[alpha]"]
    assert (found["outcome"], found["waived_by"]) == ("fail", None)
    assert any(note in text for text in found["notes"]) if note else not found["notes"]


def test_a_range_of_versions_covers_the_board(waived: Project) -> None:
    write(
        waived,
        waiver(board="", versions='{ driver = ">=0.9.8, <0.9.9", runtime = "==2.3.*" }', soc='"rk3588"'),
    )
    assert waived.run("--rknpu-report", "out").ret == 0
    assert waived.results()[1]["test_neighbours[alpha]"]["outcome"] == "waived"


def test_an_expired_waiver_is_reported(waived: Project) -> None:
    write(waived, waiver(expires=str(TODAY - timedelta(days=1))))
    result = waived.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["EXPIRED waivers.toml, waiver 1 (SYNC-07, board alpha): ended on *renew or remove*"]
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_an_unexpected_pass_is_not_green(waived: Project, workers: int) -> None:
    write(waived, waiver(board='"beta"'), waiver())
    result = waived.run("--rknpu-report", "out", workers=workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["UNEXPECTED PASS waivers.toml, waiver 1 (SYNC-07, board beta): on beta; remove*"]
    )
    tests = {test.rpartition("::")[2]: found for test, found in waived.results()[1].items()}
    assert tests["test_neighbours[beta]"]["outcome"] == "pass"
    assert tests["waiver_1[beta]"]["outcome"] == "inconclusive"
    assert "unexpected pass" in tests["waiver_1[beta]"]["message"]
    assert "waiver_2[alpha]" not in tests
    junit = (waived.pytester.path / "out/junit/beta.xml").read_text(encoding="utf-8")
    assert 'type="inconclusive"' in junit


@pytest.mark.parametrize(
    "option", [("-k", "neighbours"), ("--rknpu-only", "test_it.py::test_neighbours[beta]")]
)
def test_part_of_the_tests_proves_no_unexpected_pass(waived: Project, option: tuple[str, str]) -> None:
    write(waived, waiver(board='"beta"'))
    result = waived.run("--board", "beta", *option)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["UNEXPECTED PASS*"])


def test_a_waiver_that_nothing_needs_is_named(waived: Project) -> None:
    write(waived, waiver(), waiver(requirement='"MEM-01"'))
    result = waived.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["unused waivers.toml, waiver 2 (MEM-01, board alpha): *"])


def test_a_waiver_of_two_kinds_of_failure_is_broad(project: Project) -> None:
    project.tests(
        "@pytest.mark.requirement('SYNC-07')\n"
        "@pytest.mark.parametrize('text', ['lost at 7', 'lost at 8', 'lost for ever'])\n"
        "def test_neighbours(npu, text):\n    raise ConformanceFailure(text)\n"
    )
    write(project, waiver(message='"lost"'))
    result = project.run("--board", "alpha")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["broad waivers.toml, waiver 1 *: covered 2 different failures; narrow*"])


def test_the_runtimes_log_can_be_waived_by_its_own_requirement(project: Project) -> None:
    project.tests(
        "@pytest.mark.requirement('SYNC-01')\ndef test_it(npu): npu.session.log = 'E RKNN: known noise\\n'\n"
    )
    write(project, waiver(requirement='"VER-05"', message='"E RKNN: known noise"'))
    assert project.run("--board", "alpha", "--rknpu-report", "out").ret == 0
    assert project.results()[1]["test_it[alpha]"]["outcome"] == "waived"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_file_stops_the_run_before_any_board(waived: Project, workers: int) -> None:
    write(waived, waiver(message='".*"'))
    result = waived.run(workers=workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "waivers.toml: [[waiver]] 1" in result.stderr.str() + result.stdout.str()
    assert waived.opened() == []


def test_a_file_that_is_named_must_be_there(waived: Project) -> None:
    result = waived.run("--rknpu-waivers", "gone.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gone.toml: no such file*"])


def test_the_ini_file_names_one(waived: Project) -> None:
    (waived.pytester.path / "lab.toml").write_text(waiver(), encoding="utf-8")
    waived.pytester.makeini("[pytest]\nrknpu_waivers = lab.toml\n")
    assert waived.run().ret == 0


def test_infra_is_never_waived(project: Project) -> None:
    project.tests(
        "@pytest.mark.requirement('SYNC-07')\ndef test_it(npu): raise BoardError('neighbour at 0x1 lost')\n"
    )
    write(project, waiver())
    assert project.run("--board", "alpha", "--rknpu-report", "out").ret == 1
    assert project.results()[1]["test_it[alpha]"]["outcome"] == "infra"
