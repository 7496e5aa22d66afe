"""`rknpu run`: the shipped suites from any folder, pytest's options and exit code untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rknpu.cli import run as module
from pytest_rknpu.cli import shipped
from pytest_rknpu.cli.run import pytest_arguments
from pytest_rknpu.errors import ConfigurationError

TABLE = '[[board]]\nname = "mine"\nsoc = "rk3588"\nruntime = "emulator"\n'


@pytest.mark.parametrize(
    "extra",
    [
        [],
        ["-k", "sync and not slow", "-x"],
        ["-n2", "--dist", "load", "-vv"],
        ["-xvs", "--lf", "--board", "emu-*", "--board=sim-*"],
        ["--junitxml=a b.xml", "-p", "no:cacheprovider", "", "ü"],
        ["--boards", "lab.toml", "--version"],
        ["path/test_x.py::test_y[a-b]", "-h"],
    ],
    ids=str,
)
def test_options_reach_pytest_as_they_are(rknpu, monkeypatch, tmp_path: Path, extra: list[str]) -> None:
    seen: list[list[str]] = []

    def replace(program: str, command: list[str]) -> None:
        seen.append(command)
        raise SystemExit(5)

    monkeypatch.setattr(module.os, "execv", replace)
    with pytest.raises(SystemExit, match="5"):
        rknpu("run", *extra)
    (command,) = seen
    assert command[1:3] == ["-m", "pytest"]
    assert command[3:] == pytest_arguments(
        tmp_path, shipped.suites_folder(), shipped.shipped_boards_file(), extra
    )
    assert command[len(command) - len(extra) :] == extra


def test_two_dashes_hand_help_over(rknpu, monkeypatch) -> None:
    monkeypatch.setattr(module.os, "execv", lambda program, command: pytest.fail(command[-1]))
    with pytest.raises(pytest.fail.Exception, match="--help"):
        rknpu("run", "--", "--help")


def test_cache_and_root_are_the_working_folder(rknpu_process, tmp_path: Path) -> None:
    answer = rknpu_process("run", "--collect-only", "-v", "--board", "emu-rk3588")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    lines = answer.stdout.splitlines()
    assert f"rootdir: {tmp_path}" in lines
    assert "cachedir: .pytest_cache" in lines  # pytest shows it from the root folder
    assert "emu-rk3588" in answer.stdout
    assert "sim-rk3588" not in answer.stdout
    assert {path.name for path in tmp_path.iterdir()} <= {".pytest_cache"}


def test_the_exit_code_is_that_of_pytest(rknpu_process) -> None:
    nothing = rknpu_process("run", "-k", "no_such_test_anywhere", "-q")
    assert nothing.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert rknpu_process("run", "--no-such-option").returncode == pytest.ExitCode.USAGE_ERROR


def test_own_boards_are_used(rknpu_process, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(TABLE)
    answer = rknpu_process("run", "--collect-only", "-q")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "mine" in answer.stdout
    assert "emu-rk3588" not in answer.stdout


def test_settings_of_a_project_around_do_not_count(rknpu_process, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    answer = rknpu_process("run", "--collect-only", "-q", "--board", "emu-rk3588")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_wheel_before_a_clone(tmp_path: Path) -> None:
    package = tmp_path / "pytest_rknpu"
    (tmp_path / "suites").mkdir()
    package.mkdir()
    (tmp_path / "boards.toml").touch()
    assert shipped.suites_folder(package) == tmp_path / "suites"
    assert shipped.shipped_boards_file(package) == tmp_path / "boards.toml"
    (package / "_suites").mkdir()
    (package / "_suites" / "boards.toml").touch()
    assert shipped.suites_folder(package) == package / "_suites"
    assert shipped.shipped_boards_file(package) == package / "_suites" / "boards.toml"


def test_a_broken_installation_is_named(tmp_path: Path) -> None:
    for find in (shipped.suites_folder, shipped.shipped_boards_file):
        with pytest.raises(ConfigurationError, match="install pytest-rknpu again"):
            find(tmp_path / "pytest_rknpu")
