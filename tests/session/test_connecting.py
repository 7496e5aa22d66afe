"""Boards that do not answer as they should, behind an ssh that plays them."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_rknpu.errors import BoardError, BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session.board_session import connect

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
        (f"echo Welcome; {RUN}", r"writes to stdout before Python does.*\.bashrc"),
        (f"head -c 100000 /dev/zero; {RUN}", "writes to stdout before Python does"),
        ("exit 127", r"exit code 127: there is no .*python.*set python in boards\.toml"),
        ("exit 255", "ssh failed; its own words are on stderr"),
        ("exit 0", "ended with exit code 0 before Python answered"),
        ("kill -9 $$", "ended with exit code -9 before Python answered"),
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
