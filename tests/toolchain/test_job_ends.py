"""A job's process ends at once where it may, and takes nothing with it that was printed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jobs import Jobs, wait_until_gone

from pytest_rknpu.toolchain import fork_server

AT_ONCE = f"""
sys.path.insert(0, {str(fork_server.SERVER.parent)!r})
from ending import ending
"""


def test_what_a_job_does_after_its_end_keeps_nobody_waiting(jobs: Jobs) -> None:
    """As to give back its memory. It is ended, should it not end by itself."""
    job = jobs(after=f"{AT_ONCE}\nending.tell()\nthreading.Event().wait(120)")
    wait_until_gone(job["pid"])
    assert jobs()["parent"] == job["parent"]


@pytest.mark.parametrize("way", ["forked", "fresh"])
def test_an_end_at_once_loses_nothing_that_was_printed(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "fresh":
        monkeypatch.setattr("pytest_rknpu.toolchain.process.run_forked", lambda *_: None)
    code = f"""{AT_ONCE}
import ctypes
sys.stdout = open(1, "w", buffering=1 << 16, closefd=False)
print("from Python")
ctypes.CDLL(None).printf(b"from C\\n")
ending.now()
open("ordinary end", "w")
"""
    assert (jobs(after=code)["parent"] == os.getpid()) == (way == "fresh")
    assert sorted((tmp_path / "job1" / "build.log").read_text().split("\n")) == ["", "from C", "from Python"]
    assert not (tmp_path / "job1" / "ordinary end").exists()


def test_processes_that_the_toolkit_left_get_the_ordinary_end(jobs: Jobs, tmp_path: Path) -> None:
    code = f"""{AT_ONCE}
import multiprocessing
left = multiprocessing.get_context("fork").Process(target=threading.Event().wait, args=(120,), daemon=True)
left.start()
open("left", "w").write(str(left.pid))
ending.now()
open("ordinary end", "w")
"""
    jobs(after=code)
    assert (tmp_path / "job1" / "ordinary end").exists()
    wait_until_gone(int((tmp_path / "job1" / "left").read_text()))
