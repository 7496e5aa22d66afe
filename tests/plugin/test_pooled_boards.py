"""Equal boards that stand for each other (``--rknpu-per soc``), and leases that are lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from plugin.project import Project

THREE = "".join(
    f'[[board]]\nname = "{name}"\nsoc = "{soc}"\nruntime = "emulator"\ntags = {{ site = "lab" }}\n\n'
    for name, soc in (("one", "rk3588"), ("two", "rk3588"), ("other", "rk3576"))
)

SIX = """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(6))
def test_it(npu, n):
    pass
"""


@pytest.fixture
def pools(project: Project) -> Project:
    """A project with two equal boards and one of another SoC."""
    project.boards(THREE)
    project.tests(SIX)
    return project


def ran_on(project: Project, folder: str = "out") -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for result in project.results(folder)[1].values():
        found.setdefault(result["board"], set()).add(result["ran_on"])
    return found


def hold(project: Project, number: int) -> str:
    """Lines of a conftest that lease a board before the run does."""
    return (
        "import pathlib\n"
        "from pytest_rknpu.farm.lease import lease, this_process\n"
        "from pytest_rknpu.inventory.schema import load_boards\n"
        "path = pathlib.Path('boards.toml')\n"
        f"board = load_boards(path).boards[{number}]\n"
        "keys = {board.name: board.lease_key(path)}\n"
        f"held{number} = lease(keys, this_process('R1', 'me at work'), wait_s=0, tell=print)\n"
        f"held{number}.__enter__()\n"
    )


def add_to_conftest(project: Project, text: str) -> None:
    path = project.pytester.path / "conftest.py"
    path.write_text(f"{path.read_text()}\n{text}")


def test_each_test_runs_once_per_soc(pools: Project) -> None:
    run = pools.run("--rknpu-per", "soc", "--rknpu-report", "out")
    run.assert_outcomes(passed=12)
    assert ran_on(pools) == {"rk3588": {"one"}, "rk3576": {"other"}}
    assert sorted(pools.results()[1]) == sorted(
        f"test_it[{s}-{n}]" for s in ("rk3588", "rk3576") for n in range(6)
    )
    run.stdout.fnmatch_lines(["rknpu: board rk3588 *whichever is free of one, two", "rk3588: * on one"])
    assert pools.opened() == ["one", "other"]
    assert {path.name for path in (pools.pytester.path / "out/junit").iterdir()} == {
        "rk3588.xml",
        "rk3576.xml",
    }


def test_workers_share_a_socs_tests_and_each_has_its_own_board(pools: Project) -> None:
    pools.tests(SIX.replace("pass", "import time; time.sleep(0.3)").replace("range(6)", "range(12)"))
    run = pools.run(
        "--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out", "--rknpu-wait", "0", workers=3
    )
    run.assert_outcomes(passed=12)
    assert ran_on(pools) == {"rk3588": {"one", "two"}}
    assert sorted(pools.opened()) == ["one", "two"]


def test_whichever_is_free_is_taken(pools: Project) -> None:
    add_to_conftest(pools, hold(pools, 0))
    pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out", "--rknpu-wait", "0")
    assert ran_on(pools) == {"rk3588": {"two"}}


def test_where_none_is_free_all_holders_are_named(pools: Project) -> None:
    add_to_conftest(pools, hold(pools, 0) + hold(pools, 1))
    pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out", "--rknpu-wait", "0.2")
    message = pools.results()[1]["test_it[rk3588-0]"]["message"]
    assert "board one: still held after 0.2 s by " in message
    assert "board two: still held after 0.2 s by " in message
    assert {test["outcome"] for test in pools.results()[1].values()} == {"infra"}


def test_a_board_that_cannot_be_opened_is_replaced(pools: Project) -> None:
    pools.boards(THREE.replace('"one"', '"broken-one"'))
    run = pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out")
    run.assert_outcomes(passed=6)
    assert ran_on(pools) == {"rk3588": {"two"}}
    run.stdout.fnmatch_lines(["rknpu: board broken-one*no route to host; trying another board of rk3588"])


def test_a_board_that_is_given_up_is_replaced(pools: Project) -> None:
    pools.tests(SIX.replace("pass", "if npu.session.board.name == 'one': npu.session.die()"))
    run = pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out")
    outcomes = [test["outcome"] for _, test in sorted(pools.results()[1].items())]
    assert outcomes == ["infra", "infra", "pass", "pass", "pass", "pass"]
    assert [test["ran_on"] for _, test in sorted(pools.results()[1].items())] == ["one"] * 2 + ["two"] * 4
    run.stdout.fnmatch_lines(["rknpu: board one is in quarantine*going on with another board of rk3588"])


def test_where_all_are_given_up_the_rest_is_told(pools: Project) -> None:
    pools.tests(SIX.replace("pass", "npu.session.die()"))
    pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out")
    results = [test for _, test in sorted(pools.results()[1].items())]
    assert {test["outcome"] for test in results} == {"infra"}
    assert "quarantine" in results[-1]["message"]
    assert sorted(set(pools.opened())) == ["one", "two"]


@pytest.mark.parametrize("workers", [0, 3])
def test_boards_of_a_pool_that_run_other_versions_are_told(pools: Project, workers: int) -> None:
    pools.tests(
        SIX.replace(
            "pass",
            "npu.session.versions['driver'] = npu.session.board.name; npu.session.die() if n < 2 else 0",
        )
    )
    run = pools.run("--rknpu-per", "soc", "--soc", "rk3588", "--rknpu-report", "out", "--rknpu-losses", "1")
    run.stdout.fnmatch_lines(
        ["NOT EQUAL: pool rk3588: board two does not run what board one * driver one there, two here"]
    )
    notes = {test["ran_on"]: test["notes"] for test in pools.results()[1].values()}
    assert notes["one"] == []
    assert any("board two does not run what board one of its pool does" in note for note in notes["two"])
    junit = (pools.pytester.path / "out/junit/rk3588.xml").read_text()
    assert "one: one; two: two" in junit


def test_tags_choose_boards(pools: Project) -> None:
    pools.boards(THREE.replace("lab", "attic", 1))
    pools.run("--tag", "site=lab", "--rknpu-report", "out")
    assert {test["board"] for test in pools.results()[1].values()} == {"two", "other"}
    pools.run("--tag", "site=lab", "--tag", "soc=rk3576", "--rknpu-report", "out")
    assert {test["board"] for test in pools.results()[1].values()} == {"other"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tag", "site"), "--tag 'site': give KEY=VALUE"),
        (("--tag", "site=moon"), "no board is left by --tag 'site=moon'"),
        (("--rknpu-durations", "nothing"), "*nothing*"),
    ],
)
def test_wrong_choices_are_usage_errors(pools: Project, arguments: tuple[str, ...], words: str) -> None:
    workers = 2 if "--rknpu-durations" in arguments else 0
    run = pools.run(*arguments, workers=workers)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    (run.stderr if run.stderr.str() else run.stdout).fnmatch_lines([f"*{words}*"])


def test_boards_that_cannot_stand_for_each_other_are_a_usage_error(pools: Project) -> None:
    pools.boards(THREE.replace("lab", "attic", 1))
    run = pools.run("--rknpu-per", "soc")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["*boards one and two (pool rk3588-emulator) cannot stand for each other*tags*"])


def test_the_longest_tests_of_an_earlier_run_go_first(pools: Project) -> None:
    pools.tests(SIX.replace("pass", "import time; time.sleep([0, 0.2, 0, 0, 0.4, 0][n])"))
    chosen = ("--rknpu-per", "soc", "--soc", "rk3588")
    pools.run(*chosen, "--rknpu-report", "first")
    pools.run(*chosen, "--rknpu-report", "second", "--rknpu-durations", "first", workers=1)
    order = list(pools.results("second")[1])
    assert order[0] == "test_it[rk3588-4]"
    assert (
        "test_it[rk3588-1]" in order[1:3]
    )  # xdist's worker needs a next one, which is a short one, to begin


def test_a_lock_that_was_removed_is_noticed_after_the_test(project: Project) -> None:
    project.tests(
        """
import os, pathlib, shutil
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(3))
def test_it(npu, n):
    if n == 1:
        shutil.rmtree(os.environ["RKNPU_LEASE_DIR"])
        assert n == 2, "what it saw counts for nothing"
"""
    )
    project.run("--board", "alpha", "--rknpu-report", "out")
    results = [test for _, test in sorted(project.results()[1].items())]
    assert [test["outcome"] for test in results] == ["pass", "infra", "pass"]
    assert "the lease was lost: somebody removed" in results[1]["message"]
    assert project.opened() == ["alpha", "alpha"]
    assert len(list(Path(os.environ["RKNPU_LEASE_DIR"]).glob("*.lock"))) == 1
