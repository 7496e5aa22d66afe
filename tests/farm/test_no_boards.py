"""A run that needs boards and has none is told where they were looked for, and what to do."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TEST = "def test_it(npu):\n    pass\n"
BOARDS = '[[board]]\nname = "alpha"\nsoc = "rk3588"\nruntime = "emulator"\n'


def refused(pytester: pytest.Pytester, *arguments: str) -> str:
    """What the run says as it ends before any test."""
    pytester.makepyfile(test_it=TEST)
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments)
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in run.errlines if line.startswith("ERROR: ")]
    return line


@pytest.fixture
def here(pytester: pytest.Pytester) -> Path:
    """The folder where pytest is started, which has an ini file that says nothing of boards."""
    pytester.makeini("[pytest]\n")
    return pytester.path


def test_nothing_names_a_file_and_there_is_none(pytester: pytest.Pytester, here: Path) -> None:
    said = refused(pytester)
    assert (
        f"--boards is not given, and {here}/tox.ini has no rknpu_boards; nor is there one in {here}" in said
    )
    assert "`rknpu init`" in said


def test_without_an_ini_file(pytester: pytest.Pytester) -> None:
    assert "there is no ini file of pytest" in refused(pytester, "--rootdir", str(pytester.path))


@pytest.mark.usefixtures("here")
def test_nothing_names_the_file_that_is_there(pytester: pytest.Pytester) -> None:
    (pytester.path / "boards.toml").write_text(BOARDS, encoding="utf-8")
    said = refused(pytester)
    assert said.endswith(f"There is one in {pytester.path}: give --boards boards.toml")
    assert pytester.runpytest_inprocess("--boards", "boards.toml", "--collect-only").ret == 0


def test_the_ini_file_names_one_that_is_missing(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nrknpu_boards = lab/boards.toml\n")
    said = refused(pytester)
    path = pytester.path
    assert f"{path}/lab/boards.toml: no such file; rknpu_boards in {path}/tox.ini names it" in said
    command = said.partition("`")[2].partition("`")[0]
    words = [sys.executable, "-m", "pytest_rknpu.cli", *shlex.split(command)[1:]]
    subprocess.run(words, cwd=path, check=True, capture_output=True, timeout=60)
    assert pytester.runpytest_inprocess("--collect-only", "-p", "no:hypothesispytest").ret == 0


def test_the_option_names_one_that_is_missing(pytester: pytest.Pytester) -> None:
    assert "mine.toml: no such file; --boards names it. `rknpu init` writes" in refused(
        pytester, "--boards", "mine.toml"
    )


def test_a_link_to_nowhere_is_said_to_be_one(pytester: pytest.Pytester) -> None:
    (pytester.path / "boards.toml").symlink_to("gone.toml")
    assert "boards.toml: no such file" in refused(pytester, "--boards", "boards.toml")
