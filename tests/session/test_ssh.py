"""A board over ssh, with a real sshd on this host and a compiled stand-in for the runtime library."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import Program
from pytest_rknpu.session.board_session import connect

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
MODEL = b"FAKE model for the fake runtime"

pytestmark = pytest.mark.skipif(
    not (os.path.exists(SSHD) and shutil.which("ssh") and shutil.which("ssh-keygen")),
    reason="no OpenSSH server here; install it with: apt-get install openssh-server",
)


@pytest.fixture(scope="module")
def ssh_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running sshd for this user, and an ssh configuration whose host "desk-board" is it."""
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    port = _free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile "
        f"{folder}/authorized_keys\n"
        f"PidFile {folder}/pid\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    host_key = (folder / "host.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}")
    config = folder / "config"
    config.write_text(
        f"Host desk-board\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/user\n  UserKnownHostsFile {folder}/known_hosts\n  StrictHostKeyChecking "
        f"yes\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    server = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield config
    finally:
        server.terminate()
        server.wait(timeout=10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
        else:
            return


def _board(config: Path, library: str, host: str = "desk-board") -> Board:
    return Board(
        name="desk",
        soc="rk3588",
        runtime="librknnrt",
        transport="ssh",
        host=host,
        ssh_config=str(config),
        python=sys.executable,
        library=library,
    )


def test_programs_run_over_ssh(ssh_config: Path, fake_runtime: str) -> None:
    with ExitStack() as resources:
        session = connect(_board(ssh_config, fake_runtime), seed=1, resources=resources)
        model = session.store_model(MODEL)
        program = Program()
        program.init("a", model)
        program.create_mem("m", "a", 256)
        program.write("m", b"over ssh")
        program.read("m", "read", length=8)
        assert session.execute(program)["values"]["read"] == b"over ssh"
        assert session.facts["runtime_library"]["value"]["path"] == fake_runtime
        assert sorted(session.reset()["left_behind"])


def test_a_host_that_is_not_there_names_the_command_to_try(ssh_config: Path, fake_runtime: str) -> None:
    board = _board(ssh_config, fake_runtime, host="nowhere.invalid")
    with (
        ExitStack() as resources,
        pytest.raises(BoardLost, match=r"(?s)board desk: .*ssh -F .*nowhere\.invalid"),
    ):
        connect(board, seed=1, resources=resources)
