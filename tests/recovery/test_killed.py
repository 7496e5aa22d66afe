"""kill -9 in the middle of a test, of whatever takes part in it: no result is lost, and the board is free
afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loopback_sshd import needs_sshd
from plugin.project import PYTEST, Project, wait_until
from recovery.conftest import Home, until

from pytest_rknpu.farm.lease import lease, this_process
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.report.results import read_results

pytestmark = needs_sshd

HEADER = """
import os, signal, threading, time
from pathlib import Path
from pytest_rknpu.session import Program, board_session

board_session._ANSWER_SECONDS = 0.5

def at_work(npu, deadline_s, tell=lambda: None):
    program = Program()
    with program.child("child", deadline_s=100), program.repeat(2**32 - 1):
        program.thrash(4096)
    threading.Timer(0.3, tell).start()
    npu.execute(program, deadline_s)

def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
"""

RUN = (*PYTEST, "-p", "no:cacheprovider", "--rknpu-report", "out")


def results(project: Project) -> dict[str, tuple[str, str]]:
    found = read_results(project.pytester.path / "out/results.jsonl").tests
    return {result.nodeid.partition("::")[2]: (str(result.outcome), result.message) for result in found}


def require_free(project: Project, home: Home) -> None:
    """Nothing runs on the board, nothing lies there but models, and nobody holds it."""
    until(lambda: home.processes() == [], "nothing runs on the board any more", 30)
    left = {path for path in home.left() if not path.startswith(".cache/pytest-rknpu/models/")}
    assert left == set()
    file = project.pytester.path / "boards.toml"
    keys = {board.name: board.lease_key(file) for board in load_boards(file).boards}
    for name, key in keys.items():
        with lease({name: key}, this_process("after", "it"), wait_s=0, tell=print):
            pass


def test_agent_and_sshd_are_killed_and_an_agent_is_frozen(project: Project, home: Home) -> None:
    project.boards(home.table())
    project.tests(
        HEADER
        + """
@pytest.mark.parametrize("n", range(7))
def test_it(npu, n):
    agent = npu.session.agent["pid"]
    if n == 1:
        at_work(npu, 60, lambda: os.kill(agent, signal.SIGKILL))
    elif n == 3:
        at_work(npu, 60, lambda: os.kill(parent_of(agent), signal.SIGKILL))
    elif n == 5:
        at_work(npu, 2, lambda: os.kill(agent, signal.SIGSTOP))
    npu.execute(Program())
"""
    )
    run = project.pytester.run(*RUN, "--rknpu-losses", "9", timeout=300)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    found = results(project)
    assert [outcome for outcome, _ in found.values()] == ["pass", "infra"] * 3 + ["pass"]
    killed, cut, frozen = (found[f"test_it[desk-{n}]"][1] for n in (1, 3, 5))
    assert "the agent's process ended during 'execute'" in killed
    assert "closed" in cut.partition("stderr of agent and link")[2]
    assert "no answer to 'execute' within 2.5 s, nor when its agent was asked" in frozen
    assert "afterwards: its agent was still there (stopped" in frozen
    require_free(project, home)


def started(project: Project, *arguments: str) -> tuple[subprocess.Popen[bytes], int]:
    """A run that is in the middle of test 1 on the board; and the process that runs that test."""
    project.tests(
        HEADER
        + """
@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(3))
def test_it(npu, n):
    if n == 1 and npu.session.board.name == "desk":
        at_work(npu, 60, lambda: Path("there").write_text(f"{os.getpid()}."))
    npu.execute(Program())
"""
    )
    here = project.pytester.path
    with (here / "output").open("wb") as output:
        run = subprocess.Popen([*RUN, *arguments], stdout=output, stderr=output, start_new_session=True)
    there = here / "there"
    wait_until(lambda: there.exists() and there.read_text().endswith("."), "the test is at work", 120)
    return run, int(there.read_text()[:-1])


def test_a_worker_is_killed(project: Project, home: Home) -> None:
    project.boards(home.table() + '[[board]]\nname = "beside"\nsoc = "rk3576"\nruntime = "emulator"\n')
    run, worker = started(project, "-n", "2")
    os.kill(worker, signal.SIGKILL)
    assert run.wait(200) == pytest.ExitCode.TESTS_FAILED
    found = results(project)
    assert len(found) == 6
    outcome, message = found.pop("test_it[desk-1]")
    assert outcome == "harness"  # a process of this host: the board is not to blame
    assert "crashed while running" in message
    assert {outcome for outcome, _ in found.values()} == {"pass"}
    require_free(project, home)


def test_the_whole_run_is_killed(project: Project, home: Home) -> None:
    project.boards(home.table())
    run, _ = started(project)
    run.kill()
    run.wait(20)
    assert {name: outcome for name, (outcome, _) in results(project).items()} == {"test_it[desk-0]": "pass"}
    require_free(project, home)


def test_a_board_comes_back_by_power(project: Project, home: Home) -> None:
    """Its Python does not start any more, until somebody switches it: played by a file."""
    here = project.pytester.path
    python, switch = here / "python-of-the-board", here / "switch"
    python.write_text(
        f'#!/bin/sh\n[ ! -e {here}/down ] || exec cat > /dev/null\nexec {sys.executable} "$@"\n'
    )
    switch.write_text(f'#!/bin/sh\necho "$@" >> {here}/switched\nrm {here}/down\n')
    for program in (python, switch):
        program.chmod(0o755)
    power = f'{{ cycle = ["{switch}", "port 7", "$HOME"], wait_s = 100 }}'
    project.boards(home.table(python=f'"{python}"', power=power))
    project.tests(
        HEADER
        + """
from pytest_rknpu.transport import connecting

@pytest.mark.parametrize("n", range(3))
def test_it(npu, n):
    if n == 1:
        connecting.CONNECT_SECONDS = 3
        Path("down").touch()
        os.kill(npu.session.agent["pid"], signal.SIGKILL)
    npu.execute(Program())
"""
    )
    run = project.pytester.run(*RUN, timeout=300)
    assert [outcome for outcome, _ in results(project).values()] == ["pass", "infra", "pass"]
    assert (here / "switched").read_text() == "port 7 $HOME\n"
    assert "afterwards: no connection: no answer within 3 s" in results(project)["test_it[desk-1]"][1]
    run.stdout.fnmatch_lines(
        [
            "rknpu: board desk was lost (the agent's process ended during *",
            "rknpu: board desk: no connection: no answer within 3 s*; cycling its power by the command sw*",
            "rknpu: board desk is back and found fit*",
        ]
    )
    assert "port 7" not in run.stdout.str() + Path(here / "out/results.jsonl").read_text()
    require_free(project, home)
