"""Jobs of several threads: Ctrl-C ends those that run and those that wait, and nobody waits for a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import Jobs, alive, children_of, wait_until_gone

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain import process
from pytest_rknpu.toolchain.side_by_side import side_by_side


def test_results_come_in_the_order_of_the_items() -> None:
    first = threading.Event()

    def call(item: int) -> int:
        if item == 0:
            assert first.wait(10)
        first.set()
        return item * 2

    assert side_by_side(call, [0, 1]) == [0, 2]
    assert side_by_side(call, []) == []


@pytest.fixture(params=["forked", "fresh"])
def run(jobs: Jobs, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    if request.param == "fresh":
        monkeypatch.setattr(process, "run_forked", lambda *_: None)
    return jobs


def hanging(path: Path) -> Callable[[], bool]:
    """Whether a job that hangs has written down its processes."""
    return lambda: path.exists() and len(path.read_text().split()) == 2


def test_a_failure_ends_the_others(run: Jobs, tmp_path: Path) -> None:
    processes = tmp_path / "processes"

    def call(number: int) -> None:
        if number:
            run(child=str(processes), code="threading.Event().wait(120)")
        while not hanging(processes)():
            os.sched_yield()
        raise OSError("the reason")

    with pytest.raises(OSError, match="the reason"):
        side_by_side(call, [0, 1])
    wait_until_gone(*map(int, processes.read_text().split()))
    assert run()["ok"]


def test_while_jobs_are_ended_none_begins(run: Jobs) -> None:
    from pytest_rknpu.toolchain.side_by_side import RUNNING

    with RUNNING.stopped(), pytest.raises(ToolkitError, match="was ended: another one failed, or Ctrl-C"):
        run()
    assert run()["ok"]


HOST = """
import os, sys
from pathlib import Path
from jobs import Jobs
from pytest_rknpu.toolchain import process
from pytest_rknpu.toolchain.side_by_side import side_by_side

base = Path(sys.argv[1])
jobs = Jobs(base)
if sys.argv[2] == "fresh":
    process.run_forked = lambda *_: None

def call(number):
    (base / str(number)).mkdir()
    request = {"child": str(base / f"processes{number}"), "code": "threading.Event().wait(120)"}
    process.run_child(request, base / str(number), "the job", 100, base / "log", jobs.worker)

side_by_side(call, range(40))
"""


@pytest.mark.parametrize("way", ["forked", "fresh"])
def test_ctrl_c_waits_for_no_job(jobs: Jobs, tmp_path: Path, way: str) -> None:
    """Not for those that hang, nor for the others to begin."""
    (tmp_path / "host").mkdir()
    here = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path / "host"), way],
        env={**os.environ, "PYTHONPATH": here},
        stderr=subprocess.PIPE,
        text=True,
    )
    first = hanging(tmp_path / "host" / "processes0")
    while not first():
        assert host.poll() is None
        os.sched_yield()
    host.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in host.communicate(timeout=60)[1]
    for path in (tmp_path / "host").glob("processes*"):
        wait_until_gone(*map(int, path.read_text().split()))


ALONE = """
from pytest_rknpu import models
from pytest_rknpu.toolchain import CompileOptions, compile_model, process

process.run_forked = lambda *_: None
compile_model(models.load("probe_pointwise").float_onnx, CompileOptions("hangs"))
"""


def test_a_job_without_a_server_ends_with_a_killed_host(toolkit: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ALONE]) as host:
        while toolkit.read_text() != "hangs\n":
            assert host.poll() is None
            os.sched_yield()
        (job,) = children_of(host.pid)
        assert alive(job)
        host.kill()
    wait_until_gone(job)
