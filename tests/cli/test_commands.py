"""Every command's help, its errors (one line, exit code 2), and `rknpu init`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_rknpu import __version__
from pytest_rknpu.cli.shipped import shipped_boards_file
from pytest_rknpu.inventory.schema import load_boards

COMMANDS = ("boards", "compare", "init", "run", "schema", "suggest-budgets")
BROKEN = '[[board]]\nname = "one"\nsoc = "rk3589"\nruntime = "emulator"\n'


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=str)
def test_help_shows_an_example(rknpu, command: list[str]) -> None:
    answer = rknpu(*command, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert f"Example: rknpu {' '.join(command)}".strip() in answer.out


def test_no_command_shows_help(rknpu) -> None:
    assert rknpu().out == rknpu("--help").out


def test_version(rknpu) -> None:
    assert rknpu("--version").out == f"rknpu {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bords"], "bords"),
        (["--nope"], "--nope"),
        (["boards", "--nope"], "see `rknpu boards --help`"),
        (["boards", "--boards"], "--boards"),
        (["boards", "--boards", "missing.toml"], "missing.toml: no such file"),
        (["boards", "--boards", "broken.toml"], 'broken.toml: [[board]] 1 ("one"), key "soc"'),
        (["boards", "surplus"], "surplus"),
        (["init", "broken.toml"], "cannot be written"),
        (["init", "broken.toml/below"], "cannot be written"),
        (["init", "taken"], "exists and is left as it is"),
    ],
)
def test_errors_are_one_line(rknpu, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "broken.toml").write_text(BROKEN)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "boards.toml").write_text("mine")
    answer = rknpu(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("rknpu: ")
    assert words in answer.err
    assert answer.err.count("\n") == 1
    assert (tmp_path / "taken" / "boards.toml").read_text() == "mine"


def test_init_writes_a_file_that_works(rknpu, tmp_path: Path) -> None:
    answer = rknpu("init", "new/lab")
    assert answer.code == 0
    shipped = load_boards(shipped_boards_file()).boards
    assert load_boards(tmp_path / "new" / "lab" / "boards.toml").boards == shipped
    assert "rknpu run --boards new/lab/boards.toml" in answer.out
    assert rknpu("init").code == 0
    assert load_boards(tmp_path / "boards.toml").boards == shipped


def test_schema_is_a_json_schema(rknpu) -> None:
    from jsonschema.validators import validator_for

    schema = json.loads(rknpu("schema").out)
    validator_for(schema).check_schema(schema)
    assert "$schema" in schema


def test_errors_from_the_installed_command(rknpu_process) -> None:
    answer = rknpu_process("boards", "--boards", "missing.toml")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("rknpu: missing.toml")
    assert "Traceback" not in answer.stderr


def test_a_terminal_that_knows_few_letters(rknpu_process, tmp_path: Path) -> None:
    table = '[[board]]\nname = "one"\nsoc = "rk3588"\nruntime = "emulator"\nnote = "測試"\n'
    (tmp_path / "boards.toml").write_text(table, encoding="utf-8")
    answer = rknpu_process("boards", env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert answer.returncode == 0, answer.stderr
    assert r"\u6e2c\u8a66" in answer.stdout


def test_a_reader_that_leaves_early_hears_nothing(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as closed_pipe:
        command = [sys.executable, "-m", "pytest_rknpu.cli", "boards"]
        answer = subprocess.run(
            command, cwd=tmp_path, stdout=closed_pipe, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert answer.stderr == b""
    assert answer.returncode == 1


def test_the_command_starts_light() -> None:
    heavy = "numpy", "onnx", "onnxruntime", "pydantic", "pytest", "scipy", "torch", "typer"
    code = f"import sys, pytest_rknpu.cli; print([name for name in {heavy!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(rknpu_process, tmp_path: Path, closed: str) -> None:
    commands = ("boards", "run --collect-only -q -k nothing")
    script = "; ".join(
        f"{sys.executable} -m pytest_rknpu.cli {command} {closed}; echo code $? >> codes"
        for command in commands
    )
    answer = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert "Traceback" not in answer.stderr + answer.stdout
    assert (tmp_path / "codes").read_text() == "code 0\ncode 5\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["boards", "schema", "--help"])
def test_a_full_disk_is_told_in_one_line(tmp_path: Path, command: str) -> None:
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-m", "pytest_rknpu.cli", command]
        answer = subprocess.run(
            line, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert answer.returncode == 2
    assert answer.stderr == "rknpu: stdout: No space left on device\n"


@pytest.mark.parametrize("command", [["boards"], ["run", "--collect-only"], ["init"]])
def test_a_working_folder_that_is_gone(tmp_path: Path, command: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = " ".join([sys.executable, "-m", "pytest_rknpu.cli", *command])
    answer = subprocess.run(
        ["sh", "-c", f"rmdir ../gone; {words}"],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("rknpu: ")
    assert answer.stderr.count("\n") == 1


def test_what_init_advises_can_be_pasted(rknpu) -> None:
    assert "rknpu boards --boards 'my lab/boards.toml'; " in rknpu("init", "my lab").out


def test_what_was_mistyped_cannot_paint_the_terminal(rknpu) -> None:
    assert "\x1b" not in rknpu("boards", "--boards", "\x1b[2J.toml").err
