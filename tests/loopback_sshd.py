"""A real sshd on the loopback address, for tests of what goes over ssh: its port, keys and configuration."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"

needs_sshd = pytest.mark.skipif(
    not (os.path.exists(SSHD) and shutil.which("ssh") and shutil.which("ssh-keygen")),
    reason="no OpenSSH server here; install it with: apt-get install openssh-server openssh-client",
)


@dataclass(frozen=True)
class Sshd:
    """A running sshd. ``config`` is an ssh configuration whose host ``desk-board`` is it, with ``key`` and
    ``known_hosts``; ``pid`` is the listening process.
    """

    folder: Path
    port: int
    pid: int

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def key(self) -> Path:
        return self.folder / "user"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"


@contextmanager
def running_sshd(folder: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Sshd]:
    """An sshd for this user, with further lines of sshd_config, ended at the end with all its sessions."""
    port = free_port()
    for name in ("host", "user"):
        make_key(folder / name)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    lines = [
        *options,
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder}/host",
        f"AuthorizedKeysFile {folder}/authorized_keys",
        "PidFile none",
        "StrictModes no",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        "UsePAM no",
        "MaxStartups 100",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "config").write_text(
        f"Host desk-board\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/user\nHost *\n  UserKnownHostsFile {folder}/known_hosts\n"
    )
    os.makedirs("/run/sshd", exist_ok=True)
    with (folder / "sshd.log").open("wb") as log:
        server = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log, env=environment
        )
    try:
        _wait_for(port)
        yield Sshd(folder, port, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=10)


def make_key(path: Path) -> None:
    """A new key pair without a passphrase, in the place of one that may be there."""
    path.unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def free_port() -> int:
    """A port of the loopback address that nobody listens at, just now."""
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
            time.sleep(0.02)
        else:
            return
