"""pytest-timeout and pytest-rerunfailures: neither costs a lease, a result or the other boards' tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plugin.project import PYTEST, Project, wait_until

from pytest_rknpu.report.results import read_results

pytest.importorskip("pytest_rerunfailures", reason="pip install pytest-rerunfailures")
pytest.importorskip("pytest_timeout", reason="pip install pytest-timeout")

PLUGIN_TESTS = str(Path(__file__).parents[1] / "plugin")
FAKE = f"""
import sys
sys.path.insert(0, {PLUGIN_TESTS!r})
import fake_session
sys.modules["pytest_rknpu.session"] = fake_session
"""

BOARDS = "".join(
    f'[[board]]\nname = "{name}"\nsoc = "rk3588"\nruntime = "emulator"\n' for name in ("alpha", "beta")
)


@pytest.fixture
def fake(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with the boards alpha and beta, which cost nothing."""
    monkeypatch.setenv("RKNPU_FAKE_EVENTS", str(project.events))
    project.pytester.makeconftest(FAKE)
    project.boards(BOARDS)
    return project


def attempts(project: Project) -> list[tuple[str, str, bool]]:
    results = read_results(project.pytester.path / "out/results.jsonl")
    return [(result.nodeid.partition("::")[2], str(result.outcome), result.tried) for result in results.tests]


def in_a_process(project: Project, *arguments: str) -> pytest.RunResult:
    return project.pytester.run(
        *PYTEST, "-p", "no:cacheprovider", "--rknpu-report", "out", *arguments, timeout=120
    )


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_lost_board_is_had_again_for_the_second_attempt(fake: Project, workers: str) -> None:
    fake.tests(
        """
attempts = 0
def test_it(npu):
    global attempts
    attempts += 1
    if npu.session.board.name == "alpha" and attempts == 1:
        npu.session.die()
"""
    )
    run = in_a_process(fake, "--reruns", "2", "-n", workers)
    assert sorted(attempts(fake)) == [
        ("test_it[alpha]", "infra", True),
        ("test_it[alpha]", "pass", True),
        ("test_it[beta]", "pass", True),
    ]
    assert run.ret == pytest.ExitCode.TESTS_FAILED  # running it again does not undo the loss
    assert sorted(fake.opened()) == ["alpha", "alpha", "beta"]
    assert in_a_process(fake, "--rknpu-wait", "0", "-k", "beta").ret == 0


def test_a_board_in_quarantine_is_not_tried_again_and_again(fake: Project) -> None:
    fake.tests(
        """
@pytest.mark.parametrize("n", range(40))
def test_it(npu, n):
    if npu.session.board.name == "alpha":
        npu.session.die()
"""
    )
    in_a_process(fake, "--reruns", "3", "--reruns-delay", "1")
    seen = [each for each in attempts(fake) if "alpha" in each[0]]
    assert [tried for _, _, tried in seen].count(True) == 2
    assert len(seen) <= 4 + 39  # the first test alone was run again
    assert [outcome for name, outcome, _ in attempts(fake) if "beta" in name] == ["pass"] * 40


def test_a_board_that_cannot_be_opened_is_asked_once_whatever_is_run_again(fake: Project) -> None:
    fake.boards(BOARDS.replace("alpha", "broken-one"))
    fake.tests("@pytest.mark.parametrize('n', range(3))\ndef test_it(npu, n):\n    pass\n")
    in_a_process(fake, "--reruns", "2")
    assert fake.opened().count("broken-one") == 1
    assert [outcome for name, outcome, _ in attempts(fake) if "beta" in name] == ["pass"] * 3


def test_a_lease_is_free_after_the_session_of_a_test_that_was_run_again(fake: Project) -> None:
    fake.tests(
        """
import pathlib
def test_it(npu):
    if not pathlib.Path("once").exists():
        pathlib.Path("once").touch()
        assert False, "flaky"

def test_next(npu):
    pass
"""
    )
    in_a_process(fake, "--reruns", "1")
    events = [line.split()[:2] for line in fake.events.read_text().splitlines()]
    assert events == [["open", "alpha"], ["close", "alpha"], ["open", "beta"], ["close", "beta"]]


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_the_timeout_of_a_test_on_a_hung_board(project: Project, method: str) -> None:
    """With the method "thread" pytest-timeout ends the whole process, there and then."""
    project.boards(BOARDS.replace('"emulator"\n', '"emulator"\nfaults = ["run-hangs:after=10"]\n', 1))
    project.tests(
        """
from pytest_rknpu.session import Program, ZeroCopy

@pytest.mark.parametrize("n", range(3))
def test_it(npu, n):
    io, program = ZeroCopy("a", npu.model("probe_pointwise")), Program()
    io.open(program)
    with program.repeat(6 if n < 2 else 1):
        program.run(io.context)
    npu.execute(program)
"""
    )
    workers = ("-n", "1") if method == "thread" else ()
    run = in_a_process(project, "--timeout", "15", "--timeout-method", method, *workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = {name: outcome for name, outcome, _ in attempts(project)}
    assert outcomes["test_it[alpha-1]"] == ("infra" if method == "signal" else "harness")
    assert {outcome for name, outcome in outcomes.items() if name != "test_it[alpha-1]"} == {"pass"}
    assert len(outcomes) == 6
    assert in_a_process(project, "--rknpu-wait", "0", "-k", "alpha-0").ret == 0


def test_a_timeout_while_a_board_is_waited_for(project: Project) -> None:
    project.boards(BOARDS)
    project.tests("@pytest.mark.parametrize('n', range(4))\ndef test_it(npu, n):\n    pass\n")
    script = project.pytester.path / "holder.py"
    script.write_text(
        "import pathlib, sys\n"
        "from pytest_rknpu.farm.lease import lease, this_process\n"
        "from pytest_rknpu.inventory.schema import load_boards\n"
        "path = pathlib.Path('boards.toml')\n"
        "board = load_boards(path).boards[0]\n"
        "with lease({board.name: board.lease_key(path)}, this_process('R', 'me'), wait_s=0, tell=print):\n"
        "    pathlib.Path('held').touch()\n"
        "    sys.stdin.read()\n"
    )
    holder = project.pytester.popen([sys.executable, str(script)], stdin=-1)
    try:
        wait_until((project.pytester.path / "held").exists, "the board is held")
        run = in_a_process(project, "--timeout", "10")
    finally:
        holder.communicate()
    assert [tried for name, _, tried in attempts(project) if "alpha" in name] == [True, False, False, False]
    assert [outcome for name, outcome, _ in attempts(project) if "beta" in name] == ["pass"] * 4
    run.stdout.fnmatch_lines(
        ["board alpha is in quarantine*getting it was interrupted: Timeout*3 of its 4 tests*"]
    )
