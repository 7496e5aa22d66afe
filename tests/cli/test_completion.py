"""What the Tab key offers, by the shells' own protocol and in the shells themselves."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_rknpu.cli.completion import RUN_OPTIONS
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.verdict import REQUIREMENTS

BOARDS = """
[[board]]
name = "desk-1"
soc = "rk3588"
hots = "a board.toml that is wrong is completed all the same"

[[board]]
name = "desk-2"

[[board]]
name = "shelf"

[[model]]
name = "mobilenet"
path = "nowhere.onnx"
"""


@pytest.fixture
def offered(rknpu_process, tmp_path: Path):
    """The words that bash is offered behind a line; its last word is what is being typed."""
    (tmp_path / "boards.toml").write_text(BOARDS)

    def complete(line: str, **environment: str) -> list[str]:
        words = line.split(" ")
        variables = {
            "_RKNPU_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        answer = rknpu_process(env={**os.environ, **variables, **environment})
        assert answer.stderr == ""
        return answer.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("rknpu do", ["doctor"]),
        ("rknpu doctor --wi", ["--within"]),
        ("rknpu probe --board desk", ["desk-1", "desk-2"]),
        ("rknpu doctor --board ", ["desk-1", "desk-2", "shelf"]),
        ("rknpu doctor --boards other.toml --board ", ["elsewhere"]),
        ("rknpu doctor --boards missing.toml --board ", []),
        ("rknpu compile --model ", ["mobilenet"]),
        ("rknpu compile m.onnx --soc rk35", [soc for soc in SOCS if soc.startswith("rk35")]),
        ("rknpu run --so", ["--soc"]),
        ("rknpu run -x --board desk", ["desk-1", "desk-2"]),
        ("rknpu run --boards other.toml -x --board ", ["elsewhere"]),
        ("rknpu run --boards = other.toml --board = else", ["elsewhere"]),
        ("rknpu run --requirement SYNC-0", [one for one in REQUIREMENTS if one.startswith("SYNC-0")]),
        ("rknpu run --rknpu-effort ", ["quick", "normal", "thorough"]),
        ("rknpu run --soc rv1106", ["rv1106", "rv1106b"]),
        ("rknpu run --rknpu-seed ", []),
        ("rknpu history --requirement VER-0", [one for one in REQUIREMENTS if one.startswith("VER-0")]),
        ("rknpu history --board sh", ["shelf"]),
    ],
)
def test_words_are_offered(offered, tmp_path: Path, line: str, words: list[str]) -> None:
    (tmp_path / "other.toml").write_text('[[board]]\nname = "elsewhere"\n')
    assert offered(line) == words


@pytest.mark.parametrize("text", ["[[board]", "board = 3", "[[board]]\nname = 3\n", "\x00"])
def test_a_file_that_cannot_be_read_offers_nothing(offered, tmp_path: Path, text: str) -> None:
    (tmp_path / "boards.toml").write_text(text)
    assert offered("rknpu probe --board ") == []


def test_all_options_of_the_plugin_are_offered(pytestconfig: pytest.Config) -> None:
    (group,) = (one for one in pytestconfig._parser._groups if one.name == "rknpu")
    options = [name for option in group.options for name in option.names()]
    assert set(options) == set(RUN_OPTIONS), (
        "bring RUN_OPTIONS of cli/completion.py along with farm/options.py"
    )
    chosen = {name: list(option.attrs()["choices"]) for option in group.options
              for name in option.names() if option.attrs().get("choices")}  # fmt: skip
    for name, choices in chosen.items():
        offer = RUN_OPTIONS[name]
        assert offer is not None, f"{name} has choices"
        assert list(offer("", None)) == choices


@pytest.mark.parametrize("line", ["rknpu run --requirement ", "rknpu probe --board ", "rknpu run --soc "])
def test_nobody_waits_for_heavy_packages(tmp_path: Path, line: str) -> None:
    (tmp_path / "boards.toml").write_text(BOARDS)
    # Not pydantic: newer typers convert arguments by it.
    heavy = ("numpy", "onnx", "pytest", "_pytest", "matplotlib", "execnet", "torch")
    script = (
        "import sys, contextlib\nfrom pytest_rknpu.cli.app import run\n"
        "with contextlib.suppress(SystemExit):\n    run([])\n"
        f"print('heavy:', [name for name in {heavy!r} if name in sys.modules])"
    )
    variables = {
        "_RKNPU_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    answer = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(answer.stdout.splitlines()) > 1
    assert answer.stdout.splitlines()[-1] == "heavy: []"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Shells whose home is empty and whose PATH has `rknpu`."""
    (tmp_path / "boards.toml").write_text(BOARDS)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "rknpu").write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest_rknpu.cli "$@"\n')
    (programs / "rknpu").chmod(0o755)

    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "TERM": "dumb",
        # Else typer looks for the shell among the parents of the process, and takes no argument.
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    for variable in ("ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        environment.pop(variable, None)
    return Shell(tmp_path, environment)


@dataclass(frozen=True)
class Shell:
    """Shells that start in ``folder``, their home."""

    folder: Path
    environment: dict[str, str]

    def __call__(self, name: str, script: str) -> str:
        """What a script prints."""
        if shutil.which(name) is None:
            pytest.skip(f"no {name} here; install it with: apt-get install {name}")
        answer = subprocess.run(
            [name, "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def typed(self, name: str, keys: str, awaited: str) -> None:
        """Type at a terminal, once the shell there takes lines, and wait for what it shows."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.folder)
            os.execvpe(name, [name, "-i"], self.environment)
        try:
            os.write(terminal, b"echo rea''dy\n")
            self._await(terminal, "ready")
            os.write(terminal, keys.encode())
            self._await(terminal, awaited)
        finally:
            os.kill(child, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(child, 0)

    @staticmethod
    def _await(terminal: int, word: str) -> None:
        shown, deadline = "", time.monotonic() + 30
        while word not in shown:
            assert time.monotonic() < deadline, f"no {word!r} in {shown!r}"
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("probe --board desk", "desk-1 desk-2"),
        ("run --requirement VER-06", "VER-06"),
        ("probe --boards oth", ""),
    ],
)
def test_bash_completes_what_was_installed(shell, tmp_path: Path, typed: str, words: str) -> None:
    """Without a word from us bash completes the names of files."""
    shell("bash", "rknpu --install-completion bash")
    assert (tmp_path / ".bashrc").exists()
    line = f"rknpu {typed}".split(" ")
    script = (
        '. "$HOME/.bashrc"; complete -p rknpu; '
        f"COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; "
        "$(complete -p rknpu | sed 's/.*-F \\([^ ]*\\).*/\\1/') rknpu; echo \"offered: ${COMPREPLY[*]}\""
    )
    out = shell("bash", script).splitlines()
    assert "-o default" in out[0]
    assert out[-1] == f"offered: {words}".rstrip() or out[-1] == f"offered: {words}"


def test_fish_completes_what_was_installed(shell) -> None:
    shell("fish", "rknpu --install-completion fish")
    out = shell("fish", "complete --do-complete 'rknpu probe --board desk'")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["desk-1", "desk-2"]


def test_zsh_completes_what_was_installed(shell) -> None:
    """The first Tab of a session loads the function (typer's way), the next one completes."""
    shell("zsh", "rknpu --install-completion zsh")
    shell.typed("zsh", "rknpu probe --board she\t\t", "\x07lf ")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_shown(rknpu_process, name: str) -> None:
    answer = rknpu_process(env={**os.environ, "_RKNPU_COMPLETE": f"source_{name}"})
    assert answer.returncode == 0
    assert "_RKNPU_COMPLETE" in answer.stdout
    if shutil.which(name) is not None:
        subprocess.run([name, "-n"], input=answer.stdout, text=True, check=True)
