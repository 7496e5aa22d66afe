"""Boards that cannot be had, or that go away in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from plugin.project import Project
from plugin.schemas import validate_junit
from plugin.test_distribution import held_by_somebody

Run = Callable[..., pytest.RunResult]

BROKEN_AND_WHOLE = """
[[board]]
name = "broken-one"
soc = "rk3588"
runtime = "emulator"

[[board]]
name = "whole"
soc = "rk3588"
runtime = "emulator"
"""


def outcomes(project: Project) -> dict[str, str]:
    """The outcome of each test by its name."""
    return {name: result["outcome"] for name, result in project.results()[1].items()}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_board_that_cannot_be_opened_is_infra_and_others_go_on(project: Project, workers: int) -> None:
    project.boards(BROKEN_AND_WHOLE)
    project.tests("@pytest.mark.parametrize('n', range(3))\ndef test_it(npu, n):\n    pass\n")
    assert project.run("--rknpu-report", "out", workers=workers).ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(project) == {
        **{f"test_it[broken-one-{n}]": "infra" for n in range(3)},
        **{f"test_it[whole-{n}]": "pass" for n in range(3)},
    }
    for n in range(3):
        assert "no route to host" in project.results()[1][f"test_it[broken-one-{n}]"]["message"]
    assert project.opened().count("broken-one") == 1  # the others are told, not tried
    assert (project.pytester.path / "out/junit/whole.xml").exists()


def test_a_lost_session_is_rebuilt_for_the_next_test(project: Project, one_board: Run) -> None:
    project.tests(
        """
def test_1(npu):
    npu.session.die()

def test_2(npu, board):
    assert npu.session.alive and board.session is npu.session and board.versions["kernel"] == "6.1"
"""
    )
    run = one_board()
    assert outcomes(project) == {"test_1[alpha]": "infra", "test_2[alpha]": "pass"}
    assert project.opened() == ["alpha", "alpha"]
    run.stdout.fnmatch_lines(["rknpu: board alpha was lost (the link ended); opening it again"])


def test_a_board_lost_twice_is_quarantined_with_its_first_cause(project: Project) -> None:
    project.tests(
        """
@pytest.mark.parametrize("n", range(4))
def test_it(npu, n):
    if npu.session.board.name == "alpha":
        npu.session.alive = False
        raise BoardLost(f"loss {n}")
"""
    )
    project.run("--rknpu-report", "out")
    results = project.results()[1]
    assert [outcomes(project)[f"test_it[alpha-{n}]"] for n in range(4)] == ["infra"] * 4
    assert [outcomes(project)[f"test_it[beta-{n}]"] for n in range(4)] == ["pass"] * 4
    assert [results[f"test_it[alpha-{n}]"]["message"] for n in range(2)] == ["loss 0", "loss 1"]
    for n in (2, 3):
        assert "quarantine" in results[f"test_it[alpha-{n}]"]["message"]
        assert "first by: loss 0" in results[f"test_it[alpha-{n}]"]["message"]
    assert [results[f"test_it[alpha-{n}]"]["tried"] for n in range(4)] == [True, True, False, False]
    assert project.opened() == ["alpha", "alpha", "beta"]


LOST_TWICE = """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(9))
def test_it(npu, n):
    if npu.session.board.name == "alpha":
        npu.session.alive = False
        raise BoardLost(f"board alpha: loss {n}")
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_the_terminal_says_in_one_line_what_a_board_did_not_get(project: Project, workers: int) -> None:
    project.tests(LOST_TWICE)
    run = project.run("--rknpu-report", "out", "-rA", workers=workers)
    text = run.stdout.str()
    line = (
        "board alpha is in quarantine for the rest of this run: it was lost 2 times, first by: loss 0; "
        "7 of its 9 tests were not tried"
    )
    assert text.count("quarantine") == text.count(line) == 1
    assert text.count("ERROR at") == 2  # pytest's own account of the two that were lost
    assert "9 passed, 2 errors, 7 not tried" in text
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    errors = validate_junit((project.pytester.path / "out/junit/alpha.xml").read_text())
    assert errors.get("errors") == "9"


@pytest.mark.parametrize("workers", [0, 2])
def test_what_was_not_tried_does_not_end_the_run(project: Project, workers: int) -> None:
    project.tests(LOST_TWICE)
    run = project.run("--rknpu-report", "out", "--maxfail", "3", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    assert len(project.results()[1]) == 18
    assert list(outcomes(project).values()).count("pass") == 9


def test_a_loss_ends_a_run_that_is_to_stop_at_the_first_failure(project: Project) -> None:
    project.tests(LOST_TWICE)
    assert project.run("--rknpu-report", "out", "-x").ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(project) == {"test_it[alpha-0]": "infra"}
    assert project.run("--board", "alpha", "-k", "0", "--rknpu-wait", "0").ret == pytest.ExitCode.TESTS_FAILED


def test_last_failed_runs_what_was_not_tried(project: Project) -> None:
    project.tests(LOST_TWICE)
    arguments = ("--boards", "boards.toml", "-p", "no:hypothesispytest")
    project.pytester.runpytest_inprocess(*arguments)
    project.tests(LOST_TWICE.replace('== "alpha"', '== "nobody"'))
    run = project.pytester.runpytest_inprocess(*arguments, "--lf", "-v")
    run.assert_outcomes(passed=9)
    assert "test_it[beta" not in run.stdout.str()


def test_the_number_of_losses_is_the_users(project: Project, one_board: Run) -> None:
    project.tests(LOST_TWICE)
    one_board("--rknpu-losses", "3")
    assert [result["tried"] for result in project.results()[1].values()] == [True] * 3 + [False] * 6
    run = project.run("--rknpu-losses", "0")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*--rknpu-losses 0: give a number from 1"])


def test_tests_of_two_boards_in_turns_lose_none(project: Project) -> None:
    """Each turn ends a session in order, which is no loss."""
    project.tests(
        "@pytest.mark.parametrize('n', range(3))\ndef test_it(npu, n):\n    assert npu.session.alive\n"
    )
    turns = [f"test_it.py::test_it[{name}-{n}]" for n in range(3) for name in ("alpha", "beta")]
    run = project.run("--rknpu-report", "out", "-p", "no:randomly", *turns)
    assert run.ret == 0
    assert "lost" not in run.stdout.str()


def test_a_board_that_cannot_be_opened_is_tried_once_whatever_the_order(project: Project) -> None:
    project.boards(BROKEN_AND_WHOLE)
    project.tests("@pytest.mark.parametrize('n', range(3))\ndef test_it(npu, n):\n    pass\n")
    turns = [f"test_it.py::test_it[{name}-{n}]" for n in range(3) for name in ("broken-one", "whole")]
    run = project.run("--rknpu-report", "out", *turns)
    assert project.opened().count("broken-one") == 1
    text = run.stdout.str()
    line = (
        "board broken-one is in quarantine for the rest of this run: it could not be opened: no route to host"
    )
    assert text.count("ERROR at") == text.count(line) == 1
    assert f"{line}; 2 of its 3 tests were not tried" in text


def test_a_board_that_others_hold_is_waited_for_once(project: Project) -> None:
    project.tests("@pytest.mark.parametrize('n', range(3))\ndef test_it(npu, n):\n    pass\n")
    with held_by_somebody(project):
        run = project.run("--board", "alpha", "--rknpu-report", "out", "--rknpu-wait", "0.3")
    assert [result["tried"] for result in project.results()[1].values()] == [True, False, False]
    run.stdout.fnmatch_lines(
        ["board alpha is in quarantine*it could not be had: still held after 0.3 s by *"]
    )


def test_a_board_that_cannot_be_rebuilt_is_quarantined(project: Project, one_board: Run) -> None:
    project.tests(
        """
def test_1(npu):
    import fake_session
    fake_session.UNREACHABLE.add("alpha")
    npu.session.die()

def test_2(npu):
    pass

def test_3(npu):
    pass
"""
    )
    one_board("--rknpu-patience", "0")
    assert set(outcomes(project).values()) == {"infra"}
    assert project.opened() == ["alpha", "alpha"]
    for n in (2, 3):
        assert "first by: the link ended" in project.results()[1][f"test_{n}[alpha]"]["message"]


def test_a_death_in_a_test_that_says_something_else_is_noticed(project: Project, one_board: Run) -> None:
    project.tests(
        """
def test_1(npu):
    npu.session.alive = False
    assert False, "what it saw"

def test_2(npu):
    assert npu.session.alive
"""
    )
    one_board()
    assert outcomes(project) == {"test_1[alpha]": "fail", "test_2[alpha]": "pass"}


def test_boards_are_closed_before_the_next_is_opened(project: Project) -> None:
    project.tests("def test_it(npu):\n    pass\n")
    assert project.run().ret == 0
    events = [line.split()[:2] for line in project.events.read_text().splitlines()]
    assert events == [["open", "alpha"], ["close", "alpha"], ["open", "beta"], ["close", "beta"]]


def test_a_fixture_that_fails_after_npu_leaves_a_clean_board(project: Project, one_board: Run) -> None:
    project.tests(
        """
@pytest.fixture
def bad(npu):
    npu.session.left_behind = ["context a"]
    raise RuntimeError("fixture")

def test_1(bad):
    pass

def test_2(npu):
    assert npu.session.left_behind == []
"""
    )
    one_board()
    assert outcomes(project) == {"test_1[alpha]": "harness", "test_2[alpha]": "pass"}
    assert project.results()[1]["test_1[alpha]"]["notes"] == ["left behind and destroyed: context a"]
