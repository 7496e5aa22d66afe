"""A labgrid farm on the loopback address: a real coordinator, a real exporter, and an sshd for each board."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from loopback_sshd import Sshd, free_port, running_sshd

from pytest_rknpu.emulator.occupancy import MACHINE_VARIABLE
from pytest_rknpu.errors import BoardError
from pytest_rknpu.transport.labgrid import labgrid_python

EXPORTER = "shelf"

takes_long = pytest.mark.skipif(
    not os.environ.get("RKNPU_TEST_FARM"),
    reason="takes its time on a labgrid farm; run it with RKNPU_TEST_FARM=1",
)


def labgrid_scripts() -> Path | None:
    """The folder of labgrid's commands; None where it is not installed."""
    try:
        return Path(labgrid_python()).parent
    except BoardError:
        return None


@dataclass
class Farm:
    """``boards`` are the sshds of the places, by name. Coordinator and exporter can be ended and started."""

    folder: Path
    scripts: Path
    boards: dict[str, Sshd]
    tags: dict[str, dict[str, str]]
    port: int = field(default_factory=free_port)
    coordinator: subprocess.Popen[bytes] | None = None
    exporter: subprocess.Popen[bytes] | None = None
    console: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """Where the coordinator listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def ssh_config(self) -> Path:
        """For all boards."""
        return self.folder / "ssh_config"

    def board(self, name: str, where: str, soc: str = "rk3588", **more: str) -> str:
        """A ``[[board]]`` of boards.toml, emulated; ``where`` is its ``place = ..`` or ``filter = ..``."""
        lines = [
            "[[board]]",
            f'name = "{name}"',
            f'soc = "{soc}"',
            'runtime = "emulator"',
            'transport = "labgrid"',
            f'coordinator = "{self.address}"',
            where,
            f'ssh_config = "{self.ssh_config}"',
            f'python = "{sys.executable}"',
            *(f"{key} = {value}" for key, value in more.items()),
        ]
        return "\n".join(lines) + "\n\n"

    def client(self, *arguments: str, user: str = "somebody") -> str:
        """What labgrid-client says to these arguments; its failure is an error of the test."""
        run = subprocess.run(
            [str(self.scripts / "labgrid-client"), "-x", self.address, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "LG_USERNAME": user, "LG_HOSTNAME": "elsewhere"},
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def ask(self, *words: str) -> Any:
        """The same by labgrid_console.py, which starts only once; the first word is a method there."""
        if self.console is None:
            command = [labgrid_python(), str(Path(__file__).with_name("labgrid_console.py")), self.address]
            pipe = subprocess.PIPE
            self.console = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self.console.stdin is not None
        assert self.console.stdout is not None
        print(*words, file=self.console.stdin, flush=True)
        answer = json.loads(self.console.stdout.readline())
        assert "refused" not in (answer or {}), answer
        return answer

    def holders(self) -> dict[str, str]:
        """Who holds each place that is held."""
        holders: dict[str, str] = self.ask("who")
        return holders

    def require_sound(self) -> None:
        """Start what a test has ended, so that the next one finds a farm."""
        if self.coordinator is None or self.coordinator.poll() is not None:
            self.start_coordinator()
        if self.exporter is None or self.exporter.poll() is not None:
            self.start_exporter()

    def used_twice(self) -> list[str]:
        """What the emulated machines noticed of two users at once."""
        return [file.read_text() for file in sorted(self.folder.glob("*/machine.twice"))]

    def start_coordinator(self) -> None:
        """Start it; it reads the places from its folder."""
        self.coordinator = self._start("labgrid-coordinator", "-l", self.address)
        self._wait_for("labgrid-coordinator", "Coordinator ready")

    def kill_coordinator(self) -> None:
        """As a crash does. The exporter ends by itself then (its service starts it again)."""
        self._end(self.coordinator, signal.SIGKILL)
        self._end(self.exporter, signal.SIGKILL)

    def start_exporter(self) -> None:
        """Start it and wait until the coordinator has its resources."""
        self.exporter = self._start("labgrid-exporter", "-c", self.address, "-n", EXPORTER, "exporter.yaml")
        deadline = time.monotonic() + 30
        while self.client("resources").count("NetworkService") < len(self.boards):
            assert time.monotonic() < deadline, (self.folder / "labgrid-exporter.log").read_text()
            threading.Event().wait(0.2)

    def end(self) -> None:
        """End all of it."""
        if self.console is not None:
            self.console.communicate(timeout=10)
        for process in (self.exporter, self.coordinator):
            self._end(process, signal.SIGTERM)

    def write(self) -> None:
        """What coordinator and exporter read when they start."""
        places, resources = [], []
        for name, sshd in self.boards.items():
            tags = ", ".join(f"{key}: '{value}'" for key, value in self.tags[name].items())
            match = f"{{exporter: {EXPORTER}, group: {name}, cls: NetworkService, name: null, rename: null}}"
            places.append(
                f"{name}:\n  aliases: []\n  comment: ''\n  tags: {{{tags}}}\n  matches: [{match}]\n"
                "  created: 0.0\n  changed: 0.0\n"
            )
            service = f"{{address: 127.0.0.1, username: {getpass.getuser()}, port: {sshd.port}}}"
            resources.append(f"{name}:\n  NetworkService: {service}\n")
        (self.folder / "places.yaml").write_text("".join(places))
        (self.folder / "exporter.yaml").write_text("".join(resources))
        known = [sshd.known_hosts.read_text() for sshd in self.boards.values()]
        (self.folder / "known_hosts").write_text("".join(known))
        key = next(iter(self.boards.values())).key
        self.ssh_config.write_text(
            f"Host *\n  IdentityFile {key}\n  UserKnownHostsFile {self.folder}/known_hosts\n"
        )
        for sshd in self.boards.values():  # one key opens all
            shutil.copy(f"{key}.pub", sshd.folder / "authorized_keys")

    def _start(self, script: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{script}.log").open("wb") as log:
            command = [str(self.scripts / script), *arguments]
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)

    def _wait_for(self, script: str, words: str) -> None:
        log = self.folder / f"{script}.log"
        deadline = time.monotonic() + 30
        while words not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            threading.Event().wait(0.05)

    def _end(self, process: subprocess.Popen[bytes] | None, number: int) -> None:
        if process is not None and process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def running_farm(folder: Path, scripts: Path, tags: dict[str, dict[str, str]]) -> Iterator[Farm]:
    """A farm with a place for each key of ``tags``, which has these tags."""
    with ExitStack() as stack:
        boards = {}
        for name in tags:
            (folder / name).mkdir()
            machine = f"SetEnv {MACHINE_VARIABLE}={folder}/{name}/machine"
            boards[name] = stack.enter_context(running_sshd(folder / name, machine))
        farm = Farm(folder, scripts, boards, tags)
        farm.write()
        stack.callback(farm.end)
        farm.start_coordinator()
        farm.start_exporter()
        yield farm
