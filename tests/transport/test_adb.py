"""Boards over adb: real clients, with no device, and with a stand-in for their server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adb_server import AdbServer, needs_adb, running_adb_server
from loopback_sshd import free_port

from pytest_rknpu.errors import BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, Program
from pytest_rknpu.transport import Gateway, adb

Opened = Callable[..., BoardSession]
Reached = Callable[..., Gateway]


def toolkit_adb() -> str | None:
    """The client that RKNN-Toolkit2 brings, of another version than Debian's."""
    found = [
        path for folder in adb._toolkit_folders() for path in folder.glob("3rdparty/platform-tools/adb/*/adb")
    ]
    return str(found[0]) if found else None


CLIENTS = [
    pytest.param(shutil.which("adb"), id="debian", marks=needs_adb),
    pytest.param(
        toolkit_adb(),
        id="toolkit",
        marks=pytest.mark.skipif(
            toolkit_adb() is None, reason="no RKNN-Toolkit2 here; pip install 'pytest-rknpu[toolkit]'"
        ),
    ),
]


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the adb clients, as the one on the PATH."""
    monkeypatch.setenv("PATH", f"{Path(request.param).parent}{os.pathsep}{os.environ['PATH']}")
    return str(request.param)


class TestBehindAServer:
    @pytest.fixture(params=[True, False], ids=["shell protocol", "terminal"])
    def server(
        self, request: pytest.FixtureRequest, client: str, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[AdbServer]:
        with running_adb_server(monkeypatch, client, modern=request.param) as running:
            yield running

    def test_programs_run_and_every_byte_arrives(self, server: AdbServer, opened: Opened) -> None:
        session = opened(transport="adb")
        model = session.store_model(b"FAKE model" + bytes(range(256)) * 5000 + os.urandom(100_000))
        program = Program()
        program.init("a", model)
        program.create_mem("m", "a", 256)
        program.write("m", bytes(range(256)))
        program.read("m", "read", length=256)
        assert session.execute(program)["values"]["read"] == bytes(range(256))
        assert any(service.startswith("shell,v2") for service in server.asked) is server.modern

    def test_the_agent_ends_with_the_session(self, server: AdbServer, opened: Opened) -> None:
        session = opened(serial="A1B2")
        (shell,) = server.shells
        assert session.agent["pid"] == shell  # in the shell's place
        session.close()
        with pytest.raises(ProcessLookupError):
            os.kill(shell, 0)

    def test_a_killed_client_takes_the_agent_along(self, server: AdbServer, opened: Opened) -> None:
        session = opened(serial="A1B2")
        session._link._gateway.kill()
        with pytest.raises(BoardLost, match="ended during 'reset'"):
            session.reset()

    def test_a_killed_agent_is_noticed(self, server: AdbServer, opened: Opened) -> None:
        session = opened(serial="A1B2")
        os.kill(session.agent["pid"], signal.SIGKILL)
        with pytest.raises(BoardLost, match="ended during 'reset'"):
            session.reset()

    def test_there_is_no_python(self, server: AdbServer, reached: Reached) -> None:
        with pytest.raises(BoardLost, match=r'there is no /opt/python3\.9; .*runtime = "connected"'):
            reached(serial="A1B2", python="/opt/python3.9")

    def test_a_board_in_the_network_is_connected_to(self, server: AdbServer, reached: Reached) -> None:
        server.reachable["192.0.2.7:5555"] = "device"
        for _ in range(2):
            assert reached(serial="192.0.2.7:5555")
        with pytest.raises(BoardLost, match=r"adb connect 192\.0\.2\.8:5555 did not succeed.*adb tcpip 5555"):
            reached(serial="192.0.2.8:5555")


@needs_adb
class TestDevices:
    @pytest.fixture
    def server(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[AdbServer]:
        with running_adb_server(monkeypatch) as running:
            yield running

    @pytest.mark.parametrize(
        ("devices", "serial", "words"),
        [
            ({}, None, r"adb has no device: is the board connected.*OTG"),
            (
                {"A": "device", "B": "offline"},
                None,
                r"several devices: A \(device\), B \(offline\); set serial",
            ),
            ({"A": "device"}, "C3", r"no device C3; there are: A \(device\)"),
            (
                {"A": "unauthorized"},
                None,
                r"device A \(unauthorized\) does not trust this host yet: .*adb_keys",
            ),
            ({"A": "offline"}, "A", r"device A \(offline\) is connected but does not answer"),
            ({"A": "recovery"}, "A", "let it boot"),
            (
                {"A": "no permissions (user in plugdev group; are your udev rules wrong?)"},
                None,
                r"may not be used by this user: a udev rule .*2207",
            ),
            ({"A": "enchanted"}, "A", r"device A \(enchanted\) cannot be used"),
        ],
    )
    def test_one_that_cannot_be_used(
        self,
        server: AdbServer,
        reached: Reached,
        devices: dict[str, str],
        serial: str | None,
        words: str,
    ) -> None:
        server.devices = devices
        with pytest.raises(BoardLost, match=rf"^board desk: no connection: .*{words}"):
            reached(transport="adb", **({"serial": serial} if serial else {}))

    def test_the_only_one_needs_no_serial_number(self, server: AdbServer, reached: Reached) -> None:
        server.devices = {"emulator-5554": "device"}
        assert reached(transport="adb")

    def test_android_has_no_python(self, server: AdbServer, reached: Reached, tmp_path: Path) -> None:
        shell = "/system/bin/sh: python3: inaccessible or not found"
        server.environment["ENV"] = ""
        (tmp_path / "python3").write_text(f"#!/bin/sh\necho '{shell}' >&2\nexit 127\n")
        (tmp_path / "python3").chmod(0o755)
        server.environment["PATH"] = f"{tmp_path}:{server.environment['PATH']}"
        with pytest.raises(BoardLost, match=r'Android has no Python of its own.*runtime = "connected"'):
            reached(transport="adb", python="python3")

    def test_a_device_that_goes_away_while_it_is_connected_to(
        self, server: AdbServer, reached: Reached, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listed = adb.devices("adb")
        server.devices = {}
        monkeypatch.setattr(adb, "devices", lambda _: listed)
        with pytest.raises(
            BoardLost, match=r"the board went away while it was connected to.*by hand: .*adb -s A1B2"
        ):
            reached(transport="adb")

    def test_a_server_of_another_kind_at_its_port(
        self, reached: Reached, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import socket

        monkeypatch.setattr(adb, "_ADB_SECONDS", 1.0)
        with socket.create_server(("127.0.0.1", 0)) as mute:
            monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(mute.getsockname()[1]))
            with pytest.raises(
                BoardLost, match=r"start-server` does not answer within 1 s; run adb kill-server"
            ):
                reached(transport="adb")


def test_real_clients_and_their_server_with_no_device(
    client: str, reached: Reached, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        with pytest.raises(BoardLost, match="adb has no device"):
            reached(transport="adb")
        with pytest.raises(BoardLost, match="adb has no device A1; there are: none"):
            reached(serial="A1")
        if client != toolkit_adb():  # the older one tries for ten seconds
            with pytest.raises(BoardLost, match=r"adb connect 127\.0\.0\.1:\d+ did not succeed"):
                reached(serial=f"127.0.0.1:{free_port()}")
    finally:
        subprocess.run([client, "kill-server"], check=True, capture_output=True)


class TestTheClient:
    def test_that_of_the_toolkit_serves_where_there_is_no_other(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        brought = tmp_path / "rknn/3rdparty/platform-tools/adb/linux-aarch64/adb"
        brought.parent.mkdir(parents=True)
        brought.write_text("")
        brought.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(adb, "_toolkit_folders", lambda: [tmp_path / "rknn"])
        assert adb.find_adb() == str(brought)

    def test_the_toolkit_is_found_without_importing_it(self) -> None:
        adb._toolkit_folders()
        assert "rknn" not in sys.modules

    def test_there_is_none(self, reached: Reached, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(adb, "_toolkit_folders", list)
        with pytest.raises(
            BoardLost, match=r"there is no adb on this host; install it \(apt-get install adb\)"
        ):
            reached(transport="adb")


def test_one_lease_for_a_device_however_it_is_described(
    described: Callable[..., Board], tmp_path: Path
) -> None:
    file = tmp_path / "boards.toml"
    connected = Board(name="c", soc="rv1106", runtime="connected", device_id="A1")
    assert described(serial="A1").lease_key(file) == connected.lease_key(file)
    assert described(transport="adb").lease_key(file) != described(serial="A1").lease_key(file)


def test_what_adb_is_told_is_quoted_for_the_boards_shell() -> None:
    from pytest_rknpu.transport.prelude import shell_command

    command = shell_command("python3", before=("a b", "$(x)", "'"))
    assert re.match(r"""'a b' '\$\(x\)' ''"'"'' python3 -c 'import sys""", command)
