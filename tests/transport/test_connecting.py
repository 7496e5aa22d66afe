"""Boards that do not answer as they should, behind an ssh that plays them."""

from __future__ import annotations

import ast
import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_rknpu.agent import sources
from pytest_rknpu.errors import BoardError, BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session.board_session import connect
from pytest_rknpu.transport import prelude

# What the last argument of ssh, the command on the board, does there.
RUN = 'eval "$command"'


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``board(script)``: connect to a board whose ssh is a shell script; raises what `connect` raises."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def open_it(script: str) -> None:
        ssh = folder / "ssh"
        ssh.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nfor command; do :; done\n{script}\n")
        ssh.chmod(0o755)
        described = Board(name="desk", soc="rk3588", host="192.0.2.7", python=sys.executable)
        with ExitStack() as resources:
            connect(described, seed=1, resources=resources)

    return open_it


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"head -c 300000 /dev/zero; {RUN}", r"256 KiB came on stdout before Python did.*\.bashrc"),
        ("printf 'pytest-rknpu:ready;late'; exec sleep 9", "stdout after Python has started"),
        ("printf 'pytest-rknpu:ready;'; exit 255", "ended with exit code 255 just after Python answered"),
        ("exit 127", r"exit code 127: there is no .*python.*set python in boards\.toml"),
        ("exit 126", r"exit code 126: .*python.* cannot be executed there"),
        ("exit 255", "ssh ended with exit code 255 before Python answered"),
        ("exit 0", "ssh ended with exit code 0 before Python answered"),
        ("kill -9 $$", "ssh ended with exit code -9 before Python answered"),
        ("echo some words >&2; exit 3", r"ended with exit code 3 .*\(its words: some words\)"),
        (
            r"printf 'a\033[2Jb\007\377c%s\n' '%' >&2; exit 3",
            r"ended with exit code 3 .*\(its words: a \[2Jb .c%\)",
        ),
        ("head -c 1000000 /dev/zero >&2; exit 3", r"ended with exit code 3 before Python answered\."),
        ("seq 100000 >&2; exit 3", r"ended with exit code 3 .*\(its words: 99995 \| .*\| 100000\)"),
    ],
)
def test_no_connection(board, script: str, words: str) -> None:
    with pytest.raises(
        BoardLost, match=rf"(?s)^board desk: no connection: .*{words}.* by hand: ssh .*192\.0\.2\.7"
    ):
        board(script)


def test_a_board_that_never_answers(board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_rknpu.transport.connecting.CONNECT_SECONDS", 0.5)
    with pytest.raises(BoardLost, match=r"board desk: no connection: no answer within 0\.5 s"):
        board("exec sleep 100")
    (pid,) = (tmp_path / "pids").read_text().split()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_there_is_no_ssh(board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BoardLost, match=r"board desk: no connection: .*No such file or directory: 'ssh'"):
        board("exit 0")


def test_the_playing_ssh_connects(board) -> None:
    with pytest.raises(BoardError, match=r"librknnrt\.so") as caught:  # there is none on this host
        board(RUN)
    assert not isinstance(caught.value, BoardLost)


@pytest.mark.parametrize(
    "noise", ["echo Welcome", "head -c 200000 /dev/zero", "printf 'pytest-rknpu:ready'", "set -x; exec 2>&1"]
)
def test_a_login_shell_that_greets_is_no_obstacle(board, noise: str) -> None:
    with pytest.raises(BoardError, match=r"librknnrt\.so") as caught:
        board(f"{noise}; {RUN}")
    assert not isinstance(caught.value, BoardLost)


def test_a_shell_full_of_words_on_stderr_does_not_stall_the_link(board) -> None:
    """More than a pipe holds, before and while the link is used."""
    with pytest.raises(BoardError, match=r"librknnrt\.so") as caught:
        board(f"seq 100000 >&2; (seq 1000000 >&2) & {RUN}")
    assert not isinstance(caught.value, BoardLost)


def old_python(version: str) -> str:
    """A Python that is too old, as pyenv has it."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(root.glob(f"versions/{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python {version} under {root}/versions")
    return str(found[0])


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_a_python_that_is_too_old_is_named(board, version: str) -> None:
    with pytest.raises(BoardLost, match=rf"Python {version}\.\d+ there is too old, 3\.8 or newer is needed"):
        board(f"""eval "$(echo "$command" | sed 's#^[^ ]*#{old_python(version)}#')" """)


def test_a_python_without_some_of_its_library_is_named(board) -> None:
    with pytest.raises(BoardLost, match=r"the Python there lacks ctypez of its standard .*python3-minimal"):
        board("""eval "$(echo "$command" | sed s/ctypes/ctypez/)" """)


def test_what_the_agent_imports_is_looked_for_at_once() -> None:
    imported = set()
    for text in sources().values():
        for node in ast.parse(text).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).split(".")[0])
    assert imported - {"__future__", "os", "sys"} <= set(prelude.MODULES.split()), "add it there"


@pytest.mark.parametrize("one_stream", [True, False])
def test_no_shell_expands_what_runs_first(one_stream: bool) -> None:
    """csh and fish are among them. Old servers of adb take no more than 1,024 bytes."""
    assert not set("'\\$`!~\n") & set(prelude.source(one_stream=one_stream))
    assert len(prelude.shell_command("/usr/local/bin/python3", one_stream=one_stream)) < 950
