"""pytest-xdist: one worker per board, one run for all workers, and nothing lost when a process dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from plugin.project import PYTEST, Project, wait_until
from plugin.schemas import validate_junit

from pytest_rknpu.report.results import read_results

MANY = """
import os
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(12))
def test_it(npu, record, n):
    record.measure("process", os.getpid())
    record.measure("run", os.environ["PYTEST_XDIST_TESTRUNUID"])
    record.measure("seed", str(record.seed))
"""


def test_all_tests_of_a_board_run_on_one_worker(project: Project) -> None:
    project.tests(MANY)
    assert project.run("--rknpu-report", "out", workers=2).ret == 0
    processes: dict[str, set[int]] = {}
    for result in project.results()[1].values():
        processes.setdefault(result["board"], set()).add(result["measurements"][0]["value"])
    assert {board: len(pids) for board, pids in processes.items()} == {"alpha": 1, "beta": 1}
    assert processes["alpha"] != processes["beta"]
    assert sorted(project.opened()) == ["alpha", "beta"]


def test_entries_for_one_machine_share_a_worker_and_others_do_not_wait(project: Project) -> None:
    entry = '[[board]]\nname = "{}"\nsoc = "rk3588"\nhost = "{}"\n'
    project.boards(
        entry.format("as-root", "192.0.2.1")
        + entry.format("as-user", "192.0.2.1")
        + entry.format("b", "192.0.2.2")
    )
    project.tests(MANY)
    assert project.run("--rknpu-report", "out", "--rknpu-wait", "0", workers=2).ret == 0
    processes = {
        result["board"]: result["measurements"][0]["value"] for result in project.results()[1].values()
    }
    assert processes["as-root"] == processes["as-user"] != processes["b"]


def test_node_ids_are_those_of_a_run_without_workers(project: Project) -> None:
    project.tests(MANY.replace('os.environ["PYTEST_XDIST_TESTRUNUID"]', "'-'"))
    ids = []
    for workers in (0, 2):
        project.run("--rknpu-report", f"out{workers}", workers=workers)
        ids.append(set(project.results(f"out{workers}")[1]))
    assert ids[0] == ids[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seed_replays_every_test(project: Project, workers: int) -> None:
    project.tests(MANY.replace('os.environ["PYTEST_XDIST_TESTRUNUID"]', "'-'"))
    project.run("--rknpu-report", "drawn", workers=workers)
    run, drawn = project.results("drawn")
    project.run("--rknpu-report", "again", "--rknpu-seed", str(run["seed"]))
    assert {name: each["seed"] for name, each in drawn.items()} == {
        name: each["seed"] for name, each in project.results("again")[1].items()
    }
    assert len({each["seed"] for each in drawn.values()}) == len(drawn)
    assert all(each["measurements"][2]["value"] == str(each["seed"]) for each in drawn.values())


def test_another_way_of_distribution_is_left_alone(project: Project) -> None:
    project.tests(MANY)
    run = project.run("--dist", "loadfile", "-v", workers=2)
    assert run.ret == 0
    run.stdout.fnmatch_lines(["scheduling tests via LoadFileScheduling"])
    project.run("-v", workers=2).stdout.fnmatch_lines(["scheduling tests via BoardScheduling"])


def test_a_worker_that_dies_leaves_a_result_and_a_free_board(project: Project) -> None:
    project.tests(
        """
import os
@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize("n", range(6))
def test_it(npu, n):
    if n == 3 and npu.session.board.name == "alpha":
        os._exit(9)
"""
    )
    run = project.run("--rknpu-report", "out", workers=2)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    results = project.results()[1]
    assert len(results) == 12
    crashed = results.pop("test_it[alpha-3]")
    assert (crashed["outcome"], crashed["requirement"], crashed["soc"]) == ("harness", ["MEM-02"], "rk3588")
    assert "crashed while running" in crashed["message"]
    assert {each["outcome"] for each in results.values()} == {"pass"}
    junit = validate_junit((project.pytester.path / "out/junit/alpha.xml").read_text())
    assert junit.get("errors") == "1"
    # The board was opened once more, by the worker that took over, and the culprit was not tried again.
    assert sorted(project.opened()) == ["alpha", "alpha", "beta"]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_run_keeps_its_results(project: Project, workers: int) -> None:
    project.tests(
        """
import threading
@pytest.mark.parametrize("n", range(5))
def test_it(npu, n):
    if n == 3:
        threading.Event().wait(60)
"""
    )
    command = [*PYTEST, "--board", "alpha", "-n", str(workers), "--rknpu-report", "out"]
    quiet = subprocess.DEVNULL
    killed = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    path = project.pytester.path / "out/results.jsonl"
    try:
        wait_until(lambda: path.exists() and path.read_text().count("\n") >= 4, "three results")
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(timeout=10)
    results = read_results(path)
    assert [result.nodeid for result in results.tests] == [
        f"test_it.py::test_it[alpha-{n}]" for n in range(3)
    ]
    assert results.run.boards[0].name == "alpha"
    # Its lease went with it: the next run does not wait.
    assert project.run("--board", "alpha", "-k", "0", "--rknpu-wait", "0").ret == 0


def test_workers_leave_nothing_behind(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = project.pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    project.tests(MANY)
    assert project.run(workers=2).ret == 0
    assert [path.name for path in temporary.iterdir() if "rknpu-2" in path.name] == []


@contextmanager
def held_by_somebody(project: Project, board: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Another process holds a board of the project until the end of the block."""
    script = project.pytester.path / "holder.py"
    script.write_text(
        "import sys, pathlib\n"
        "from pytest_rknpu.farm.lease import lease, this_process\n"
        "from pytest_rknpu.inventory.schema import load_boards\n"
        "path = pathlib.Path('boards.toml')\n"
        f"board = load_boards(path).boards[{board}]\n"
        "key, holder = board.lease_key(path), this_process('R1', 'me at work')\n"
        "with lease({board.name: key}, holder, wait_s=0, tell=print):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, str(script)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.communicate(timeout=20)


def test_runs_wait_for_a_board_and_take_turns(project: Project) -> None:
    project.tests(
        """
import pathlib, time
@pytest.mark.parametrize("n", range(2))
def test_it(npu, n):
    inside = pathlib.Path("inside")
    inside.mkdir()  # fails if somebody else is in there
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        pass
    inside.rmdir()
"""
    )
    command = [*PYTEST, "--board", "alpha", "-p", "no:cacheprovider"]
    outputs = [project.pytester.path / f"output{n}" for n in range(3)]
    runs = []
    with held_by_somebody(project) as holder:
        for output, extra in zip(outputs, ((), (), ("-n", "2")), strict=True):
            with output.open("w") as file:
                runs.append(subprocess.Popen([*command, *extra], stdout=file, stderr=subprocess.STDOUT))
        wait_until(lambda: all("is held by" in output.read_text() for output in outputs), "all wait", 60)
    assert [run.wait(timeout=60) for run in runs] == [0, 0, 0]
    for output in outputs:
        told = re.findall(r"rknpu: board alpha is held by (.*); waiting for up to 600 s", output.read_text())
        assert len(told) == 1
        assert re.search(rf"process {holder.pid}, since 2.*, run R1: me at work", told[0])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_board_held_for_too_long_is_infra_that_names_the_holder(project: Project, workers: int) -> None:
    project.tests("def test_it(npu):\n    pass\ndef test_host():\n    pass\n")
    with held_by_somebody(project) as holder:
        run = project.run("--rknpu-report", "out", "--rknpu-wait", "0.3", workers=workers)
    results = project.results()[1]
    assert results["test_it[beta]"]["outcome"] == "pass"
    assert results["test_it[alpha]"]["outcome"] == "infra"
    message = results["test_it[alpha]"]["message"]
    assert "still held after 0.3 s" in message
    assert f"process {holder.pid}" in message
    assert "run R1: me at work" in message
    assert "--rknpu-wait" in message
    assert (run.stdout.str() + run.stderr.str()).count("waiting for up to 0.3 s") == 1
