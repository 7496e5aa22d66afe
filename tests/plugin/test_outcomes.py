"""Every outcome once, without and with xdist: terminal, results.jsonl, both kinds of JUnit, exit code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from plugin.project import Project
from plugin.schemas import properties_of, results_validator, validate_junit

import pytest_rknpu

Run = Callable[..., pytest.RunResult]


@dataclass(frozen=True)
class Case:
    """A test's body and what has to come of it. ``junit`` is the element and type of a test case."""

    body: str
    outcome: str
    word: str
    junit: tuple[str, str] | None
    message: str


CASES = {
    "passes": Case("npu.record.measure('lines', 3, 'lines')", "pass", "PASSED", None, ""),
    "fails": Case(
        "raise ConformanceFailure('stale line 7')", "fail", "FAILED", ("failure", "fail"), "stale line 7"
    ),
    "asserts": Case("assert 1 + 1 == 3, 'sum'", "fail", "FAILED", ("failure", "fail"), "sum"),
    "says_fail": Case("pytest.fail('said so')", "fail", "FAILED", ("failure", "fail"), "said so"),
    "skips": Case(
        "pytest.skip('has no such core')", "skip", "SKIPPED", ("skipped", "skipped"), "has no such core"
    ),
    "unclear": Case(
        "raise Inconclusive('3 of 300')",
        "inconclusive",
        "INCONCLUSIVE",
        ("error", "inconclusive"),
        "3 of 300",
    ),
    "waives": Case(
        "raise Waived('known since 2.5.0')",
        "waived",
        "WAIVED",
        ("skipped", "skipped"),
        "known since 2.5.0",
    ),
    "board": Case("raise BoardError('fuse')", "infra", "INFRA", ("error", "infra"), "fuse"),
    "harness": Case("{}['key']", "harness", "HARNESS", ("error", "harness"), "KeyError: 'key'"),
    "no_proof": Case(
        "pytest.skip('')", "harness", "HARNESS", ("error", "harness"), "skipped without a reason"
    ),
    "hangs": Case(
        "pytest.fail('Timeout (>1.0s) from pytest-timeout.')", "infra", "INFRA", ("error", "infra"), "Timeout"
    ),
    "logs": Case(
        "npu.session.log = 'E RKNN: submit failed\\n'", "fail", "FAILED", ("failure", "fail"), "VER-05: "
    ),
    "xfail": Case("pytest.xfail('known')", "fail", "FAILED", ("failure", "fail"), "known"),
}
RED = [name for name, case in CASES.items() if case.outcome not in ("pass", "skip", "waived")]


def source(names: list[str]) -> str:
    """A test file with one test per case."""
    lines = []
    for number, name in enumerate(names, start=1):
        lines += [
            f"@pytest.mark.requirement('SYNC-{number:02}')",
            f"def test_{name}(npu):",
            f"    {CASES[name].body}",
        ]
    return "\n".join(lines)


def outcomes_in(text: str) -> dict[str, Any]:
    """The test cases of a JUnit file by test name, after validation."""
    return {case.get("name"): case for case in validate_junit(text).iter("testcase")}


@pytest.mark.parametrize("workers", [0, 2])
def test_every_outcome_in_every_place(project: Project, one_board: Run, workers: int) -> None:
    project.tests(source(list(CASES)))
    run = one_board("-v", "--junitxml", "pytest.xml", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    _, results = project.results()
    junit = outcomes_in((project.pytester.path / "out/junit/alpha.xml").read_text())
    pytests = etree.parse(project.pytester.path / "pytest.xml").findall(".//testcase")
    by_name = {case.get("name"): case for case in pytests}
    assert set(results) == set(junit) == set(by_name) == {f"test_{name}[alpha]" for name in CASES}
    for number, (name, case) in enumerate(CASES.items(), start=1):
        test = f"test_{name}[alpha]"
        assert results[test]["outcome"] == case.outcome, name
        assert case.message in results[test]["message"], name
        line = f"test_it.py::{test} {case.word}" if not workers else f"{case.word} *test_it.py::{test}"
        run.stdout.fnmatch_lines([f"*{line.replace('[', '[[]')}*"])
        verdicts = [
            (each.tag, each.get("type"))
            for each in junit[test]
            if each.tag in ("failure", "error", "skipped")
        ]
        assert verdicts == ([case.junit] if case.junit else []), name
        for properties in (properties_of(junit[test]), properties_of(by_name[test])):
            assert properties["outcome"] == case.outcome
            assert properties["requirement"].split(", ")[0] == f"SYNC-{number:02}"
            assert (properties["board"], properties["soc"], properties["evidence"]) == (
                "alpha",
                "rk3588",
                "emulator",
            )
            assert "runtime emulated 2.3.2" in properties["versions"]
            assert properties["seed"] == str(results[test]["seed"])


@pytest.mark.parametrize("name", list(CASES))
def test_exit_code_of_each_outcome_alone(project: Project, one_board: Run, name: str) -> None:
    project.tests(source([name]))
    run = one_board()
    # A lone skip shows nothing, and so is not green either.
    assert run.ret == (0 if name in ("passes", "waives") else pytest.ExitCode.TESTS_FAILED)
    assert ("showed nothing" in run.stdout.str()) == (name == "skips")


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_skipped_all_requirements_is_not_green(
    project: Project, one_board: Run, workers: int
) -> None:
    project.tests(source(["skips"]) + "\ndef test_of_no_requirement(npu):\n    pass\n")
    run = one_board(workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    run.stdout.fnmatch_lines(["not a pass: all 1 tests of requirements were skipped*"])


def test_one_shown_requirement_makes_a_run_with_skips_green(project: Project, one_board: Run) -> None:
    project.tests(source(["skips", "passes"]))
    assert one_board().ret == 0


def test_lines_follow_the_schema(project: Project, one_board: Run) -> None:
    project.tests(source(list(CASES)))
    one_board()
    validator = results_validator()
    run, tests = project.results()
    for record in (run, *tests.values()):
        validator.validate(record)


def test_log_errors_fail_what_would_pass_and_name_ver_05(project: Project, one_board: Run) -> None:
    project.tests(
        """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize(
    "then", ["pass", "raise Inconclusive('?')", "pytest.skip('no')", "assert False, 'own'"]
)
def test_it(npu, then):
    npu.session.log = "I RKNN: fine\\nE RKNN: not fine\\n"
    exec(then)

@pytest.mark.requirement("SYNC-02")
@pytest.mark.expects_runtime_errors
def test_expected(npu):
    npu.session.log = "E RKNN: as it should\\n"
"""
    )
    run = one_board()
    _, results = project.results()
    expected = results.pop("test_expected[alpha]")
    assert (expected["outcome"], expected["requirement"]) == ("pass", ["SYNC-02"])
    assert {each["outcome"] for each in results.values()} == {"fail"}
    assert all(each["requirement"] == ["SYNC-01", "VER-05"] for each in results.values())
    messages = {name: each["message"] for name, each in results.items()}
    assert messages.pop("test_it[alpha-assert False, 'own']").startswith("own")
    assert all("E RKNN: not fine" in message and "VER-05" in message for message in messages.values())
    run.stdout.fnmatch_lines(["*Captured runtime log call*", "I RKNN: fine", "E RKNN: not fine"])
    log = "the runtime's log ends with:\nI RKNN: fine\nE RKNN: not fine"
    assert all(each["notes"] == [log] for each in results.values())
    assert expected["notes"] == []


def test_what_a_test_leaves_behind_is_noted(project: Project, one_board: Run) -> None:
    project.tests(
        """
@pytest.mark.requirement("SYNC-01")
def test_it(npu):
    npu.session.left_behind = ["context a", "memory b"]
"""
    )
    assert one_board().ret == 0
    assert project.results()[1]["test_it[alpha]"]["notes"] == [
        "left behind and destroyed: context a, memory b"
    ]


def test_measurements_reach_the_file(project: Project, one_board: Run) -> None:
    project.tests(
        """
import numpy
def test_it(board, record):
    record.measure("sqnr", float("inf"), "dB")
    record.measure("count", numpy.int64(3), "lines")
    record.measure("ratio", numpy.float32(0.5))
    record.measure("word", "auto")
"""
    )
    assert one_board().ret == 0
    measured = project.results()[1]["test_it[alpha]"]["measurements"]
    assert [(each["name"], each["value"], each["unit"]) for each in measured] == [
        ("sqnr", "inf", "dB"),
        ("count", 3, "lines"),
        ("ratio", 0.5, ""),
        ("word", "auto", ""),
    ]


@pytest.mark.parametrize("arguments", [(), ("--tb=short",)])
def test_own_errors_are_shown_by_their_message(
    project: Project, one_board: Run, arguments: tuple[str, ...]
) -> None:
    project.tests("def helper():\n    raise ConformanceFailure('stale')\ndef test_it(npu):\n    helper()\n")
    text = one_board(*arguments).stdout.str()
    assert "E   pytest_rknpu.errors.ConformanceFailure: stale" in text
    assert "raise ConformanceFailure" in text  # the innermost line of the test's own file
    assert "test_it.py:6: in test_it" not in text


@pytest.mark.parametrize("arguments", [("--tb=long",), ("-vv",)])
def test_own_errors_in_full_where_asked_for(
    project: Project, one_board: Run, arguments: tuple[str, ...]
) -> None:
    project.tests("def helper():\n    raise ConformanceFailure('stale')\ndef test_it(npu):\n    helper()\n")
    text = one_board(*arguments).stdout.str()
    assert ">       helper()" in text
    assert ">       raise ConformanceFailure('stale')" in text


def test_errors_of_a_teardown_are_not_lost(project: Project, one_board: Run) -> None:
    project.tests(
        """
@pytest.fixture
def bad():
    yield
    raise BoardError("power went")

@pytest.mark.requirement("SYNC-01")
def test_passes_until_then(npu, bad):
    pass

@pytest.mark.requirement("SYNC-02")
def test_fails_before(npu, bad):
    assert False, "first"
"""
    )
    assert one_board().ret == pytest.ExitCode.TESTS_FAILED
    _, results = project.results()
    assert results["test_passes_until_then[alpha]"]["outcome"] == "infra"
    assert results["test_fails_before[alpha]"]["outcome"] == "fail"
    assert results["test_fails_before[alpha]"]["message"].startswith("first")


def test_an_assertion_of_this_package_is_no_word_on_a_board(project: Project) -> None:
    package = Path(pytest_rknpu.__file__).parent
    project.tests(
        f"""
def raised_in(path):
    exec(compile("assert not 'sound'", path, "exec"))

@pytest.fixture
def link():
    raised_in("/usr/lib/python3/site-packages/execnet/gateway_bootstrap.py")

def test_link(npu, link):
    pass

def test_session(npu):
    raised_in({str(package / "session/link.py")!r})

def test_suite_of_the_wheel(npu):
    raised_in({str(package / "_suites/sync/conftest.py")!r})

def test_own(npu):
    assert not "sound"
"""
    )
    project.run("--board", "alpha", "--rknpu-report", "out")
    outcomes = {name: result["outcome"] for name, result in project.results()[1].items()}
    assert outcomes == {
        "test_link[alpha]": "harness",
        "test_session[alpha]": "harness",
        "test_suite_of_the_wheel[alpha]": "fail",
        "test_own[alpha]": "fail",
    }
