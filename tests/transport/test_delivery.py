"""Models on their way to a board and on its disk: cut links, full disks, read-only folders, dead links."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from loopback_sshd import Sshd, needs_sshd

from pytest_rknpu.errors import BoardError, BoardLost
from pytest_rknpu.session import BoardSession, Program
from pytest_rknpu.transport import ssh

Opened = Callable[..., BoardSession]
SMALL = b"FAKE model for the fake runtime"


def large(size: int, seed: int = 1) -> bytes:
    """A model that no link compresses."""
    return SMALL + random.Random(seed).randbytes(size)


def runs(session: BoardSession, model: bytes) -> bool:
    """Whether a model can be put on the board and initialised there."""
    program = Program()
    program.init("a", session.store_model(model))
    program.destroy("a")
    return bool(session.execute(program)["ok"])


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert happened()


class Tap:
    """A port of the loopback address that leads to another, until ``limit`` bytes have gone that way."""

    def __init__(self, target: int) -> None:
        self.limit: int | None = None
        self.passed = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                for source, sink, counts in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._copy, args=(source, sink, counts), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.passed += len(data) if counts else 0
                if self.limit is not None and self.passed > self.limit:
                    for end in (source, sink):  # as a reset, not as an orderly end
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        # The other direction's recv() would keep the socket open after close().
                        end.shutdown(socket.SHUT_RD)
                        end.close()
                    return
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def tap(sshd: Sshd) -> Iterator[Tap]:
    tap = Tap(sshd.port)
    yield tap
    tap.close()


@pytest.fixture
def by_tap(tap: Tap, sshd: Sshd, tmp_path: Path) -> dict[str, object]:
    """Keys of a board that is behind ``tap``."""
    (tmp_path / "known_hosts").write_text(f"* {(sshd.folder / 'host.pub').read_text()}")
    config = tmp_path / "ssh_config"
    config.write_text(f"Host *\n  UserKnownHostsFile {tmp_path}/known_hosts\n")
    return {"host": "127.0.0.1", "port": tap.port, "ssh_config": str(config), "key": str(sshd.key)}


@needs_sshd
def test_a_connection_that_is_reset_amid_a_model(
    opened: Opened, tap: Tap, by_tap: dict[str, object], tmp_path: Path
) -> None:
    model = large(3_000_000)
    session = opened(**by_tap)
    tap.limit = tap.passed + 1_200_000
    with pytest.raises(BoardLost, match=r"(?s)during 'put_model'|'put_model' could not be sent"):
        session.store_model(model)
    tap.limit = None
    wait_until(lambda: not Path(f"/proc/{session.agent['pid']}").exists())
    assert not list((tmp_path / "models").glob("*.rknn"))
    session = opened(**by_tap)
    before = tap.passed
    assert runs(session, model)
    assert tap.passed - before > len(model)
    assert len(list((tmp_path / "models").iterdir())) == 1
    before = tap.passed
    assert runs(opened(**by_tap), model)
    assert tap.passed - before < len(model)  # it is there, and does not travel again


@needs_sshd
def test_a_connection_that_is_reset_while_it_comes_about(
    opened: Opened, tap: Tap, by_tap: dict[str, object]
) -> None:
    """Before anybody logs in, while Python is brought to answer, and while the agent travels."""
    for limit in (0, 6_000, 40_000, 150_000):
        tap.limit = tap.passed + limit
        with pytest.raises(BoardLost, match=r"^board desk: "):
            opened(**by_tap)


@needs_sshd
def test_a_dead_link_is_noticed_by_ssh(opened: Opened, sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the deadline of the request: the far end is frozen, and nothing comes from there."""
    monkeypatch.setattr(ssh, "_ALIVE_SECONDS", 1)
    monkeypatch.setattr(ssh, "_ALIVE_MISSED", 1)
    session = opened(host="desk-board", ssh_config=str(sshd.config))
    frozen = descendants(sshd.pid)
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(BoardLost, match=r"(?s)ended during 'reset'.*Timeout, server .* not responding"):
            session.request({"request": "reset"}, 600)
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)


def descendants(pid: int) -> list[int]:
    """All processes below ``pid``."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [below for child in map(int, children) for below in (child, *descendants(child))]


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0,
    reason="this user cannot mount file systems in a namespace of its own (unshare -m)",
)


@needs_namespaces
class TestDisks:
    @pytest.fixture
    def python(self, tmp_path: Path) -> Callable[[str], str]:
        """``python(commands)``: a Python that runs where ``commands`` were run before, for it alone."""

        def script(commands: str) -> str:
            file = tmp_path / "python"
            file.write_text(
                f'#!/bin/sh\nexec unshare -m sh -ec \'{commands}\nexec {sys.executable} "$@"\' - "$@"\n'
            )
            file.chmod(0o755)
            return str(file)

        return script

    @staticmethod
    def seen(session: BoardSession, folder: Path) -> list[str]:
        """What the board sees in a folder of its own."""
        return sorted(os.listdir(f"/proc/{session.agent['pid']}/root{folder}"))

    def test_a_full_disk(self, opened: Opened, python, tmp_path: Path) -> None:
        folder = tmp_path / "disk"
        folder.mkdir()
        session = opened(
            transport="local",
            python=python(f"mount -t tmpfs -o size=256k tmpfs {folder}"),
            model_cache=str(folder),
        )
        with pytest.raises(
            BoardError,
            match=r"^board desk: model not stored: .*disk: cannot store a model of 3000031 bytes \(No space "
            r"left on device, 262144 bytes are free\); make room, or set model_cache in boards\.toml",
        ) as caught:
            session.store_model(large(3_000_000))
        assert not isinstance(caught.value, BoardLost)
        assert self.seen(session, folder) == []
        assert runs(session, large(100_000))  # the board goes on
        assert len(self.seen(session, folder)) == 1

    def test_models_that_nobody_asked_for_make_room(self, opened: Opened, python, tmp_path: Path) -> None:
        folder = tmp_path / "disk"
        folder.mkdir()
        old, mine = f"{'a' * 64}.rknn", "notes.txt"
        session = opened(
            transport="local",
            python=python(
                f"mount -t tmpfs -o size=512k tmpfs {folder}\nhead -c 300000 /dev/zero > {folder}/{old}\n"
                f"echo mine > {folder}/{mine}"
            ),
            model_cache=str(folder),
        )
        first = large(100_000)
        assert runs(session, first)
        assert old in self.seen(session, folder)
        assert runs(session, large(300_000, 2))
        there = self.seen(session, folder)
        assert old not in there
        assert mine in there
        assert runs(session, first)
        assert len(there) == 3

    def test_a_folder_that_is_read_only(self, opened: Opened, python, tmp_path: Path) -> None:
        folder = tmp_path / "disk"
        folder.mkdir()
        session = opened(
            transport="local",
            python=python(f"mount -t tmpfs -o ro tmpfs {folder}"),
            model_cache=str(folder / "models"),
        )
        with pytest.raises(
            BoardError, match=r"disk/models: cannot store .* \(Read-only file system\); make room, or"
        ):
            session.store_model(SMALL)
        assert self.seen(session, folder) == []

    @pytest.mark.parametrize("option", ["ro", "size=64k"])
    def test_a_home_folder_that_takes_nothing(
        self, opened: Opened, python, tmp_path: Path, option: str
    ) -> None:
        """Read-only, as many small images have it, or full: models go to the folder for temporary files."""
        home, temporary = tmp_path / "home", tmp_path / "temporary"
        for folder in (home, temporary):
            folder.mkdir()
        board = {
            "transport": "local",
            "python": python(
                f"mount -t tmpfs -o {option} tmpfs {home}\nexport HOME={home} TMPDIR={temporary}"
            ),
            "model_cache": None,
        }
        model = large(200_000)
        assert runs(opened(**board), model)
        (folder,) = temporary.iterdir()
        assert folder.name == f"pytest-rknpu-{os.geteuid()}"
        assert folder.stat().st_mode & 0o777 == 0o700
        (stored,) = folder.iterdir()
        written = stored.stat().st_mtime_ns
        assert runs(opened(**board), model)
        assert stored.stat().st_mtime_ns == written  # found there, not sent again
