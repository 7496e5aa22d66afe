"""A stand-in for adb's server with boards behind it: real adb clients talk to it, commands run on this host.

It speaks the protocol of adb's OVERVIEW.TXT and SERVICES.TXT as far as listing, connecting and shells go.
``modern`` boards have the shell protocol (shell_v2: streams apart, exit code); the others run everything in a
terminal of their own, as old adbd does, with all that a terminal does to bytes.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)

needs_adb = pytest.mark.skipif(
    shutil.which("adb") is None, reason="no adb here; install it with: apt-get install adb"
)


@dataclass
class AdbServer:
    """``devices``: serial number to state; ``reachable``: what ``adb connect`` finds, to what it then is.

    ``asked`` are the services that clients asked for, ``shells`` the processes of shells that run.
    """

    version: int
    modern: bool = True
    devices: dict[str, str] = field(default_factory=lambda: {"A1B2": "device"})
    reachable: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    asked: list[str] = field(default_factory=list)
    shells: list[int] = field(default_factory=list)
    port: int = 0


def client_version(adb: str) -> int:
    """The number by which client and server know whether they fit: 41 of "version 1.0.41"."""
    said = subprocess.run([adb, "version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version 1\.0\.(\d+)", said)
    assert found
    return int(found[1])


@contextmanager
def running_adb_server(
    monkeypatch: pytest.MonkeyPatch, adb: str | Path = "adb", **settings: object
) -> Iterator[AdbServer]:
    """A server that every adb client started from here finds, until the end."""
    server = AdbServer(client_version(str(adb)), **settings)  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
        threading.Thread(target=_accept, args=(listener, server), daemon=True).start()
        try:
            yield server
        finally:
            # Wakes the thread in accept, which a plain close does not.
            listener.shutdown(socket.SHUT_RDWR)
    _wait_until(lambda: not server.shells)


def _wait_until(happened) -> None:
    deadline = time.monotonic() + 10
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert happened()


def _accept(listener: socket.socket, server: AdbServer) -> None:
    with contextlib.suppress(OSError):
        while True:
            link, _ = listener.accept()
            threading.Thread(target=_serve, args=(link, server), daemon=True).start()


def _serve(link: socket.socket, server: AdbServer) -> None:
    with link, contextlib.suppress(OSError):
        with contextlib.suppress(EOFError, ValueError):
            while True:
                service = _exactly(link, int(_exactly(link, 4), 16)).decode()
                server.asked.append(service)
                _answer(link, service, server)
        link.shutdown(socket.SHUT_RDWR)  # a thread that still reads would keep it open


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = link.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _text(text: str) -> bytes:
    return f"{len(text):04x}{text}".encode()


def _answer(link: socket.socket, service: str, server: AdbServer) -> None:
    """Answer one service; raises EOFError where the connection ends with it."""
    if service == "host:version":
        link.sendall(b"OKAY" + _text(f"{server.version:04x}"))
    elif service == "host:devices":
        rows = "".join(f"{name}\t{state}\n" for name, state in server.devices.items())
        link.sendall(b"OKAY" + _text(rows))
    elif service.startswith("host:connect:"):
        link.sendall(b"OKAY" + _text(_connect(service.removeprefix("host:connect:"), server)))
    elif service.endswith(("features", "host-features")):
        link.sendall(b"OKAY" + _text("shell_v2,cmd,stat_v2" if server.modern else "cmd"))
    elif service.startswith(("host:tport:", "host:transport")):
        _switch(link, service, server)
        return
    elif service.startswith("shell"):
        _shell(link, service, server)
    else:
        link.sendall(b"FAIL" + _text(f"unknown service {service}"))
    raise EOFError  # one question a connection, unless it was switched to a device


def _connect(address: str, server: AdbServer) -> str:
    if address in server.devices:
        return f"already connected to {address}"
    if address not in server.reachable:
        return f"failed to connect to {address}: Connection refused"
    server.devices[address] = server.reachable[address]
    return f"connected to {address}"


def _switch(link: socket.socket, service: str, server: AdbServer) -> None:
    serial = service.removeprefix("host:transport:").removeprefix("host:tport:serial:")
    state = server.devices.get(serial)
    if state != "device":
        link.sendall(b"FAIL" + _text(f"device '{serial}' not found" if state is None else f"device {state}"))
        raise EOFError
    link.sendall(b"OKAY" + (struct.pack("<Q", 1) if service.startswith("host:tport") else b""))


def _shell(link: socket.socket, service: str, server: AdbServer) -> None:
    kind, _, command = service.partition(":")
    link.sendall(b"OKAY")
    if server.modern and ",v2" in kind:
        _streams_apart(link, command, server)
    else:
        _in_a_terminal(link, command, server)


def _streams_apart(link: socket.socket, command: str, server: AdbServer) -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=server.environment,
        start_new_session=True,
    )
    server.shells.append(process.pid)
    assert process.stdout is not None
    assert process.stderr is not None
    lock = threading.Lock()

    def send(packet: int, data: bytes) -> None:
        with lock, contextlib.suppress(OSError):
            link.sendall(struct.pack("<BI", packet, len(data)) + data)

    def copy(stream, packet: int) -> None:
        while data := os.read(stream.fileno(), 65536):
            send(packet, data)

    copies = [
        threading.Thread(target=copy, args=(stream, packet), daemon=True)
        for stream, packet in ((process.stdout, STDOUT), (process.stderr, STDERR))
    ]
    listener = threading.Thread(target=_feed, args=(link, process), daemon=True)
    for thread in (*copies, listener):
        thread.start()
    code = process.wait()
    for thread in copies:
        thread.join()
    send(EXIT, bytes([code & 0xFF]))
    server.shells.remove(process.pid)


def _feed(link: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """What the client sends to the process's stdin; the end of the client is the end of the process."""
    assert process.stdin is not None
    try:
        while True:
            packet, length = struct.unpack("<BI", _exactly(link, 5))
            data = _exactly(link, length)
            if packet == STDIN:
                process.stdin.write(data)
                process.stdin.flush()
            elif packet == CLOSE_STDIN:
                process.stdin.close()
    except (OSError, EOFError, ValueError):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGHUP)


def _in_a_terminal(link: socket.socket, command: str, server: AdbServer) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=server.environment,
        start_new_session=True,
        preexec_fn=lambda: os.close(
            os.open(os.ttyname(slave), os.O_RDWR)
        ),  # becomes its controlling terminal
    )
    server.shells.append(process.pid)
    os.close(slave)
    try:
        _copy_both_ways(link, master)
    finally:
        os.close(master)  # hangs up
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGHUP)
        process.wait()
        server.shells.remove(process.pid)


def _copy_both_ways(link: socket.socket, master: int) -> None:
    while True:
        ready, _, _ = select.select([link, master], [], [])
        if master in ready:
            try:
                data = os.read(master, 65536)
            except OSError:  # nobody has the terminal open any more
                return
            link.sendall(data)
        if link in ready:
            data = link.recv(65536)
            if not data:
                return
            _write_all(master, data)


def _write_all(master: int, data: bytes) -> None:
    while data:
        data = data[os.write(master, data) :]
