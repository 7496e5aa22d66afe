"""``power = "labgrid"``: the power driver of the board's place switches it, through a real coordinator and
exporter.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from labgrid_farm import EXPORTER, Farm, labgrid_scripts, running_farm
from loopback_sshd import needs_sshd
from plugin.project import PYTEST, Project

from pytest_rknpu.report.results import read_results

pytestmark = needs_sshd
PLACE = "shelf-0"


class Relay:
    """A power socket with a web page: what labgrid's model ``simplerest`` asks for."""

    def __init__(self, off_means: Path) -> None:
        self.asked: list[str] = []
        relay = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                relay.asked.append(self.path)
                if self.path.endswith("/1"):
                    off_means.unlink(missing_ok=True)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing to the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/relay/{{index}}/{{value}}"


@pytest.fixture
def relay(project: Project) -> Iterator[Relay]:
    relay = Relay(project.pytester.path / "down")
    yield relay
    relay.server.shutdown()
    relay.server.server_close()


@pytest.fixture
def farm(tmp_path: Path, relay: Relay) -> Iterator[Farm]:
    """A farm with one place, which has a power socket."""
    scripts = labgrid_scripts()
    if scripts is None:
        pytest.skip("labgrid is not installed; install it with: pipx install labgrid")

    def with_relay(farm: Farm) -> None:
        port = f"{{model: simplerest, host: '{relay.url}', index: 3}}"
        exported = farm.folder / "exporter.yaml"
        exported.write_text(exported.read_text() + f"  NetworkPowerPort: {port}\n")

    with running_farm(tmp_path, scripts, {PLACE: {"soc": "rk3588"}}) as farm:
        with_relay(farm)
        assert farm.exporter is not None
        farm.exporter.terminate()
        farm.exporter.wait(10)
        farm.start_exporter()
        farm.client("-p", PLACE, "add-match", f"{EXPORTER}/{PLACE}/NetworkPowerPort")
        yield farm


def test_a_board_is_switched_by_its_place(project: Project, farm: Farm, relay: Relay) -> None:
    here = project.pytester.path
    python = here / "python-of-the-board"
    python.write_text(
        f'#!/bin/sh\n[ ! -e {here}/down ] || exec cat > /dev/null\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    table = farm.board("desk", f'place = "{PLACE}"', power='"labgrid"')
    project.boards(table.replace(f'python = "{sys.executable}"', f'python = "{python}"'))
    project.tests(
        """
import os, signal
from pathlib import Path
from pytest_rknpu.session import Program
from pytest_rknpu.transport import connecting

@pytest.mark.parametrize("n", range(3))
def test_it(npu, n):
    if n == 1:
        connecting.CONNECT_SECONDS = 3
        Path("down").touch()
        os.kill(npu.session.agent["pid"], signal.SIGKILL)
    npu.execute(Program())
"""
    )
    run = project.pytester.run(*PYTEST, "-p", "no:cacheprovider", "--rknpu-report", "out", timeout=300)
    results = read_results(here / "out/results.jsonl").tests
    assert [str(result.outcome) for result in results] == ["pass", "infra", "pass"]
    run.stdout.fnmatch_lines(["rknpu: board desk: *; cycling its power by labgrid's power driver"])
    assert relay.asked == ["/relay/3/0", "/relay/3/1"]
    assert farm.holders() == {}
