"""The plugin with real sessions: emulated boards in their own processes, and what if such a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from plugin.project import PYTEST, Project, wait_until
from plugin.schemas import properties_of, results_validator, validate_junit

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def emulated(pytester: pytest.Pytester) -> Project:
    """A project whose boards are the emulator's, through the real session, transport and agent."""
    project = Project(pytester, pytester.path / "events")
    project.boards(
        '[[board]]\nname = "one"\nsoc = "rk3588"\nruntime = "emulator"\n'
        '[[board]]\nname = "two"\nsoc = "rk3576"\nruntime = "emulator"\n'
    )
    return project


@pytest.mark.parametrize("workers", [0, 2])
def test_a_board_process_that_dies_in_a_test(emulated: Project, workers: int) -> None:
    emulated.tests(
        """
import os, signal

@pytest.mark.requirement("VER-01")
@pytest.mark.parametrize("n", range(3))
def test_it(board, n):
    if n == 1 and board.board.name == "one":
        os.kill(board.agent["pid"], signal.SIGKILL)
    board.request({"request": "probe"})
"""
    )
    run = emulated.pytester.runpytest_subprocess(
        "-p",
        "no:cacheprovider",
        "--boards",
        "boards.toml",
        "--rknpu-report",
        "out",
        "-n",
        str(workers),
        timeout=120,
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    _, results = emulated.results()
    outcomes = {name: result["outcome"] for name, result in results.items()}
    lost = outcomes.pop("test_it[one-1]")
    assert lost == "infra"
    assert set(outcomes.values()) == {"pass"}
    assert len(outcomes) == 5
    validator = results_validator()
    for result in results.values():
        validator.validate(result)
        assert result["versions"]["runtime"].startswith("emulated ")
        assert result["evidence"] == "emulator"
    suite = validate_junit((emulated.pytester.path / "out/junit/one.xml").read_text()).find("testsuite")
    assert (suite.get("tests"), suite.get("errors")) == ("3", "1")
    assert properties_of(suite)["runtime"].startswith("emulated ")


def test_a_shipped_test_runs_on_the_shipped_boards(emulated: Project) -> None:
    run = emulated.pytester.runpytest_subprocess(
        "--rootdir",
        str(REPOSITORY),
        "-c",
        str(REPOSITORY / "pyproject.toml"),
        "-p",
        "no:cacheprovider",
        str(REPOSITORY / "suites/sync/test_directions.py"),
        "-k",
        "context_argument",
        "--rknpu-effort",
        "quick",
        "--rknpu-report",
        str(emulated.pytester.path / "out"),
        timeout=180,
    )
    assert run.ret == 0
    _, results = emulated.results()
    assert {result["board"] for result in results.values()} == {"emu-rk3588", "emu-rk3576", "emu-rv1106"}
    assert {tuple(result["requirement"]) for result in results.values()} == {("SYNC-12",)}


LONG = """
import threading
from pytest_rknpu.session.program import Program

def saving(name):
    program = Program()
    program.timestamp(name)
    return program
"""


def test_the_timeout_of_a_test_in_the_middle_of_a_request(emulated: Project) -> None:
    pytest.importorskip("pytest_timeout")
    emulated.tests(
        LONG
        + """
@pytest.mark.timeout(1)
def test_1_hangs(npu):
    program = Program()
    with program.child("child", deadline_s=4), program.repeat(2**32 - 1):
        program.thrash(2**16)
    npu.execute(program)

@pytest.mark.parametrize("name", "abc")
def test_2_goes_on(npu, name):
    assert set(npu.execute(saving(name), 5)) == {name}
"""
    )
    run = emulated.run("--board", "one", "--rknpu-report", "out", workers=1)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = {name: result["outcome"] for name, result in emulated.results()[1].items()}
    assert outcomes.pop("test_1_hangs[one]") == "infra"
    assert list(outcomes.values()) == ["pass"] * 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("at_work", ["the board", "the test"])
def test_ctrl_c(emulated: Project, at_work: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = emulated.pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    wait = "threading.Event().wait(60)" if at_work == "the test" else "npu.execute(endless(), 60)"
    emulated.tests(
        LONG
        + f"""
def endless():
    program = Program()
    with program.repeat(2**32 - 1):
        program.thrash(2**16)
    return program

def test_1(npu):
    npu.execute(saving("t"))

def test_2(npu):
    open("there-" + npu.session.board.name, "w").close()
    {wait}
"""
    )
    command = [*PYTEST, "-n", str(workers), "--rknpu-report", "out"]
    if not workers:
        command += ["--board", "one"]
    here = emulated.pytester.path
    with (here / "output").open("w") as output:
        run = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        boards = ["one", "two"] if workers else ["one"]
        wait_until(lambda: all((here / f"there-{name}").exists() for name in boards), "all are there", 60)
        # What a worker has sent, but the controller not yet read, is lost with the run.
        written = here / "out/results.jsonl"
        wait_until(
            lambda: all(f"test_1[{name}]" in written.read_text() for name in boards), "test_1 is written", 60
        )
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does it: to every process of the run
        assert run.wait(timeout=20) == pytest.ExitCode.INTERRUPTED
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert "Traceback" not in (here / "output").read_text()
    assert {f"test_1[{name}]" for name in boards} <= set(emulated.results()[1])
    assert {path.name for path in (here / "out/junit").iterdir()} == {f"{name}.xml" for name in boards}
    wait_until(
        lambda: [path for path in temporary.iterdir() if "rknpu" in path.name] == [], "none is left", 20
    )
    assert emulated.run("-k", "test_1", "--rknpu-wait", "0").ret == 0


def test_one_test_alone_fails_as_it_did_in_the_run(emulated: Project) -> None:
    def run(*arguments: str) -> dict[str, dict[str, object]]:
        emulated.pytester.runpytest_subprocess(
            *(
                "--rootdir",
                str(REPOSITORY),
                "-c",
                str(REPOSITORY / "pyproject.toml"),
                "-p",
                "no:cacheprovider",
            ),
            *("--boards", "boards.toml", "--board", "one", "--rknpu-seed", "42", "--rknpu-effort", "quick"),
            *("--rknpu-fault", "late-write-back", "--rknpu-report", str(emulated.pytester.path / "out")),
            *arguments,
            timeout=180,
        )
        return emulated.results()[1]

    suites = REPOSITORY / "suites"
    whole = run(str(suites / "sync/test_ownership.py"), str(suites / "memory/test_canaries.py"))
    failed = {name: result["message"] for name, result in whole.items() if result["outcome"] == "fail"}
    assert len(failed) > 3
    for name in list(failed)[:3]:
        folder = "sync/test_ownership.py" if "dirty" in name else "memory/test_canaries.py"
        alone = run(f"{suites / folder}::{name}")
        assert alone[name]["message"] == failed[name]
