"""Boards that cannot be had, or that go away in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from plugin.project import Project

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
    run.stdout.fnmatch_lines(["rknpu: board alpha was lost (board alpha: the link ended); opening it again"])


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
    assert project.opened() == ["alpha", "alpha", "beta"]


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
    one_board()
    assert set(outcomes(project).values()) == {"infra"}
    assert project.opened() == ["alpha", "alpha"]
    for n in (2, 3):
        assert "first by: board alpha: the link ended" in project.results()[1][f"test_{n}[alpha]"]["message"]


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
