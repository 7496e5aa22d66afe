"""The lines below pytest's output that say how far each board is: at a terminal, and nowhere else."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

import pytest
from plugin.project import PYTEST, Project
from plugin.terminal_screen import Seen, at_a_terminal

QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:metadata")
DRAWN = b"\x1bD"  # nothing else of pytest's writes that

# Waits at n = 2 until the test that looks on has seen enough.
WAITS = """
import pathlib, time

@pytest.mark.requirement("SYNC-01")
@pytest.mark.parametrize("n", range(4))
def test_it(npu, n):
    assert n != 1, "on purpose"
    while n == 2 and not pathlib.Path("go").exists():
        time.sleep(0.01)
"""


def go(project: Project) -> None:
    (project.pytester.path / "go").touch()


def command(*arguments: str) -> Sequence[str]:
    return (*PYTEST, *QUIET, *arguments)


def below(seen: Seen) -> list[str]:
    """The lines about boards, as they stand at the end of the screen."""
    return [line for line in seen.lines if re.match(r"(alpha|beta) +\d+/\d+", line)]


def shows(*patterns: str) -> object:
    """A condition: the last lines of the screen are these."""

    def condition(lines: list[str]) -> bool:
        last = lines[-len(patterns) :]
        return len(last) == len(patterns) and all(map(re.fullmatch, patterns, last))

    return condition


@pytest.mark.parametrize("verbosity", [(), ("-v",), ("--color=no",)])
def test_each_board_has_a_line_while_the_run_goes_on(project: Project, verbosity: tuple[str, ...]) -> None:
    project.tests(WAITS)
    with at_a_terminal(command(*verbosity, "--tb=no"), project.pytester.path) as seen:
        seen.wait_for(
            shows(r"alpha  2/4  1 fail  \d\d:\d\d:\d\d test_it.py::test_it\[2\]", "beta   0/4 +waiting"),
            "both boards, the test that runs last",
        )
        assert (b"\x1b[31m" in seen.raw) == ("--color=no" not in verbosity)
        go(project)
        assert seen.ended() == 1
    assert DRAWN in seen.raw
    assert not below(seen)


def test_boards_of_several_workers_are_shown_together(project: Project) -> None:
    project.tests(WAITS)
    with at_a_terminal(command("-n", "2", "--tb=no"), project.pytester.path) as seen:
        line = r"2/4  1 fail  \d\d:\d\d:\d\d test_it.py::test_it\[2\]"
        seen.wait_for(shows(f"alpha  {line}", f"beta   {line}"), "a test on each board")
        go(project)
        assert seen.ended() == 1
    assert not below(seen)


LOSES = """
@pytest.mark.parametrize("n", range(40))
def test_it(npu, n):
    if n == 20:
        npu.session.die()
    assert n % 9, "on purpose"
"""


# What a worker says of its board comes by another way than its results: so these are there before.
SLOWLY = """
import time
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if item.name.endswith("-21]"):
        time.sleep(1)
"""


def of_the_tests(lines: list[str]) -> list[str]:
    """What follows the header, without the time that it took."""
    begin = next(n for n, line in enumerate(lines) if re.match(r"collected \d+|1 worker \[", line))
    return [re.sub(r"\d+\.\d+s", "SECONDS", line).strip(" =") for line in lines[begin:]]


@pytest.mark.parametrize(
    "arguments", [(), ("-v",), ("-n", "1"), ("-v", "-o", "log_cli=true"), ("--setup-show",)]
)
def test_what_pytest_writes_is_the_same_as_without(project: Project, arguments: tuple[str, ...]) -> None:
    """On a low and narrow screen, where lines wrap and everything scrolls, with lines from within tests."""
    project.tests(LOSES)
    if "-n" in arguments:
        conftest = project.pytester.path / "conftest.py"
        conftest.write_text(conftest.read_text() + SLOWLY)
    seen = {}
    for progress in ("off", "auto"):
        words = command(
            *arguments, "--tb=no", "--rknpu-progress", progress, "--board", "alpha", "--rknpu-seed=1"
        )
        with at_a_terminal(words, project.pytester.path, columns=60, rows=12) as screen:
            assert screen.ended() == 1
        assert (DRAWN in screen.raw) == (progress == "auto")
        seen[progress] = of_the_tests(screen.transcript)
    assert seen["auto"] == seen["off"]


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--rknpu-progress", "off"), {}),
        (("-q",), {}),
        (("-s",), {}),
        (("--capture=sys",), {}),
        (("-p", "no:terminal"), {}),
        (("--collect-only",), {}),
        ((), {"CI": "true"}),
        ((), {"TERM": "dumb"}),
    ],
)
def test_a_run_at_a_terminal_that_shows_none(
    project: Project, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    project.tests("def test_it(npu):\n    pass\n")
    with at_a_terminal(command(*arguments), project.pytester.path, environment) as seen:
        assert seen.ended() == 0
    assert DRAWN not in seen.raw


def test_tests_of_others_are_none_of_its_business(project: Project) -> None:
    project.tests("def test_it():\n    pass\n")
    with at_a_terminal(command("--color=no"), project.pytester.path) as seen:
        assert seen.ended() == 0
    assert b"1 passed" in seen.raw
    assert b"\x1b[J" not in seen.raw


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_pipe_gets_no_word_of_it(project: Project, workers: str) -> None:
    project.tests("def test_it(npu):\n    pass\n")
    run = subprocess.run(
        command("-n", workers), cwd=project.pytester.path, capture_output=True, timeout=60, check=True
    )
    assert b"\x1b" not in run.stdout + run.stderr
    assert b"1/1" not in run.stdout


@pytest.mark.parametrize("arguments", [(), ("--pdb",), ("--trace",)])
def test_a_debugger_has_the_terminal_for_itself(project: Project, arguments: tuple[str, ...]) -> None:
    breakpoint_here = "    breakpoint()\n" if not arguments else ""
    project.tests(f"def test_it(npu):\n    x = 41\n{breakpoint_here}    assert x == 42\n")
    with at_a_terminal(command("--board", "alpha", *arguments), project.pytester.path) as seen:
        seen.wait_for(lambda lines: lines[-1].startswith("(Pdb)"), "a prompt at the end of the screen")
        assert not below(seen)
        seen.type("p 'x' * 3\r")
        seen.wait_for(shows(r"\(Pdb\).*", "'xxx'", r"\(Pdb\)"), "the answer and another prompt")
        seen.type("q\r")
        seen.ended()
    assert DRAWN in seen.raw
    assert not below(seen)


def test_ctrl_c_leaves_nothing_behind(project: Project) -> None:
    project.tests(WAITS)
    with at_a_terminal(command("--tb=no"), project.pytester.path, rows=40) as seen:
        seen.wait_for(shows(r"alpha .*test_it\[2\]", "beta .*"), "the test that waits")
        seen.type("\x03")
        assert seen.ended() == pytest.ExitCode.INTERRUPTED
    assert not below(seen)
    text = "\n".join(seen.transcript)
    assert "KeyboardInterrupt" in text
    assert "not run: 2 of 4 tests of alpha, 4 of 4 tests of beta; the run ended before" in text


def test_many_boards_have_as_many_lines_as_there_is_room(project: Project) -> None:
    table = '[[board]]\nname = "b{:03}"\nsoc = "rk3588"\nruntime = "emulator"\n'
    project.boards("".join(map(table.format, range(100))))
    project.tests(WAITS.replace("n == 2", "n == 2 and npu.session.board.name == 'b050'"))
    with at_a_terminal(command("--tb=no"), project.pytester.path, columns=70, rows=20) as seen:
        seen.wait_for(
            shows(
                *[rf"b00{n}  4/4  1 fail" for n in range(8)],
                r"b050  2/4  1 fail  \d\d:\d\d:\d\d test_it.py::test_it\[2\]",
                "91 more boards  168/364  42 fail",
            ),
            "half of the screen",
        )
        go(project)
        assert seen.ended() == 1
