"""Jobs that share an import share nothing else, and neither they nor their server outlive the host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jobs import Jobs, alive, children_of, spare_of, wait_until_gone

from pytest_rknpu import models
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain import CompileOptions, compile_model, fork_server, process
from pytest_rknpu.toolchain.process import ChildFailed, run_child

MODEL = models.load("probe_pointwise")


def test_a_job_is_a_process_of_its_own(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = jobs(), jobs()
    assert first["parent"] == second["parent"] != os.getpid()
    assert first["pid"] != second["pid"]
    for number, job in enumerate((first, second), 1):
        assert job["pid"] == job["group"] == job["session"]
        assert job["folder"] == str(tmp_path / f"job{number}")
        assert job["argv"] == [str(jobs.worker), str(tmp_path / f"job{number}" / "request.json")]
        assert (job["path"], job["name"]) == (str(tmp_path), "__main__")
        assert job["temporary"] == str(tmp_path / f"job{number}" / "temporary")
        log = str(tmp_path / f"job{number}" / "build.log")
        assert job["out"] == ["/dev/null", log, log]
        assert not job["touched"]
    assert first["random"][0] != second["random"][0]
    assert first["random"][1] != second["random"][1]
    expected = {**os.environ, "TMPDIR": second["temporary"]}
    assert second["environment"] == expected
    # The same as without a server, except for the parent, what is a process's own and the socket to the host.
    monkeypatch.setattr("pytest_rknpu.toolchain.process.run_forked", lambda *_: None)
    fresh = jobs()
    assert fresh["parent"] == os.getpid()
    assert fresh["descriptors"] == second["descriptors"] - 1
    own = {"pid", "parent", "group", "session", "random", "descriptors"}
    same = json.dumps({key: value for key, value in fresh.items() if key not in own})
    assert json.loads(same.replace("job3", "job2")) == {k: v for k, v in second.items() if k not in own}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.abort()", r"died in import \(SIGABRT\)"),
        ("os.kill(os.getpid(), 9)", r"died in import \(SIGKILL\)"),
        ("os._exit(7)", "ended in import with status 7 and no exception"),
        ("sys.exit(3)", "ended in import with status 3 and no exception"),
        ("raise OSError('no')", "ended in import with status 1 and no exception"),
    ],
)
def test_a_job_that_ends_badly_disturbs_no_other(jobs: Jobs, code: str, words: str) -> None:
    before = jobs()
    with pytest.raises(ChildFailed, match=words):
        jobs(code=code)
    assert jobs()["parent"] == before["parent"]


def test_a_hang_ends_at_its_deadline_with_all_its_processes(jobs: Jobs, tmp_path: Path) -> None:
    before = jobs()
    with ThreadPoolExecutor() as pool:
        longer = pool.submit(jobs, code="threading.Event().wait(4)")
        with pytest.raises(ChildFailed, match="did not end within 2 s"):
            jobs(deadline_s=2, child=str(tmp_path / "processes"), code="threading.Event().wait(120)")
        wait_until_gone(*map(int, (tmp_path / "processes").read_text().split()))
        assert not longer.done()
        assert longer.result()["parent"] == before["parent"]
    assert jobs()["parent"] == before["parent"]


def test_jobs_at_once(jobs: Jobs, tmp_path: Path) -> None:
    """Each waits until all have begun, so that they end only if they run at the same time."""
    begun = tmp_path / "begun"
    begun.mkdir()
    folders = [tmp_path / f"at-once{number}" for number in range(4)]

    def run(number: int) -> Mapping[str, Any]:
        folders[number].mkdir()
        code = f"open({str(begun / str(number))!r}, 'w').close()\n"
        code += f"while len(os.listdir({str(begun)!r})) < 4: os.sched_yield()\nprint('number {number}')"
        log = tmp_path / f"at-once{number}.log"
        return run_child({"code": code}, folders[number], "the job", 60, log, jobs.worker)

    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(run, range(4)))
    assert len({reply["pid"] for reply in replies}) == 4
    assert len({reply["parent"] for reply in replies}) == 1
    for number, folder in enumerate(folders):
        assert (folder / "build.log").read_text() == f"number {number}\n"


def test_another_environment_or_toolkit_is_not_mixed_up(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = jobs()
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "another (call)")
    assert jobs()["parent"] == first["parent"]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    second = jobs()
    assert second["parent"] != first["parent"]
    other = tmp_path / "other"
    (tmp_path / "site").rename(other)
    monkeypatch.syspath_prepend(str(other))
    monkeypatch.setenv("PYTHONPATH", str(other))
    third = jobs()
    assert third["toolkit"] == str(other / "rknn" / "api.py")
    # Installed anew at the same place.
    (other / "rknn" / "added.py").write_text("")
    fourth = jobs()
    servers = [job["parent"] for job in (first, second, third, fourth)]
    assert len(set(servers)) == 4
    wait_until_gone(*servers[:3])


def test_a_server_that_dies_is_replaced_and_its_job_runs_anew(jobs: Jobs, tmp_path: Path) -> None:
    before = jobs()
    marker = tmp_path / "first-time"
    # The job is gone with its server; what it left in its folder is not there the second time.
    code = f"""
assert not os.path.exists("left")
open("left", "w").write("x")
if not os.path.exists({str(marker)!r}):
    open({str(marker)!r}, "w").write(str(os.getpid()))
    os.kill(os.getppid(), signal.SIGKILL)
    threading.Event().wait(120)
"""
    again = jobs(code=code)
    assert again["parent"] == os.getpid()
    wait_until_gone(int(marker.read_text()))
    after = jobs()
    assert after["parent"] not in (before["parent"], os.getpid())


def test_the_next_process_is_there_ahead_and_may_be_killed(jobs: Jobs) -> None:
    before = jobs()
    spare = spare_of(before["parent"])
    assert jobs()["pid"] == spare
    for _ in range(2):
        killed = spare_of(before["parent"])
        os.kill(killed, signal.SIGKILL)
        wait_until_gone(killed)
        job = jobs()
        assert job["parent"] == before["parent"]
        assert job["pid"] != killed


def test_a_server_that_answers_no_more_is_replaced(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped while a job hangs: it can neither kill that job nor take another."""
    monkeypatch.setattr(fork_server, "_REAP_S", 0.5)
    before = jobs()
    with pytest.raises(ChildFailed, match="did not end within 2 s"):
        jobs(deadline_s=2, code="os.kill(os.getppid(), signal.SIGSTOP); threading.Event().wait(120)")
    wait_until_gone(before["parent"])
    after = jobs()
    assert after["parent"] not in (before["parent"], os.getpid())


@pytest.mark.usefixtures("toolkit")
def test_scripts_find_their_neighbours_whatever_the_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """With PYTHONSAFEPATH a script's own folder is not on it."""
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    for run in (process.run_forked, lambda *_: None):
        monkeypatch.setattr(process, "run_forked", run)
        with pytest.raises(ToolkitError, match="failed in config"):
            compile_model(MODEL.float_onnx, CompileOptions("raises"))


A_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, args=(30,), daemon=True).start()
"""
NO_SERVER = "import os, sys\nif 'fork_server' in sys.argv[0]: os._exit(5)"


@pytest.mark.parametrize(
    ("top", "parent_is_host"),
    [(A_THREAD, True), (NO_SERVER, True), ("print('imported')", False)],
    ids=["a-thread", "no-server", "prints"],
)
def test_where_no_server_is_to_be_had(jobs: Jobs, tmp_path: Path, top: str, parent_is_host: bool) -> None:
    (tmp_path / "site" / "rknn" / "api.py").write_text(top)
    for number in (1, 2):
        assert (jobs()["parent"] == os.getpid()) == parent_is_host
        # What the import prints is at the head of the log either way.
        assert ("imported\n" in (tmp_path / f"job{number}" / "build.log").read_text()) != parent_is_host


def test_an_import_that_fails_or_hangs_is_reported_as_without_a_server(toolkit: Path, tmp_path: Path) -> None:
    api = tmp_path / "site" / "rknn" / "api.py"
    whole = api.read_text()
    api.write_text("raise ImportError('no libGL')")
    for _ in range(2):
        with pytest.raises(ToolkitError, match=r"failed in import \(ImportError: no libGL\)"):
            compile_model(MODEL.float_onnx, CompileOptions("rk3588"))
    api.write_text("import threading; threading.Event().wait(60)")
    os.utime(api.parent)
    with pytest.raises(ToolkitError, match=r"did not end within 3 s \(in step import\)"):
        compile_model(MODEL.float_onnx, CompileOptions("rk3588"), deadline_s=3)
    api.write_text(whole)
    os.utime(api.parent)
    assert compile_model(MODEL.float_onnx, CompileOptions("rk3588")).path.exists()


#: A process that gets, uses and ends a server; or is killed while a job runs.
HOST = """
import atexit, os, sys, threading
from pathlib import Path

# Registered first, so run last.
atexit.register(lambda: print(os.path.exists(f"/proc/{server}")))
from pytest_rknpu.toolchain.process import run_child

base = Path(sys.argv[1])

def run(name, request):
    folder = base / name
    folder.mkdir()
    return run_child(request, folder, "the job", 100, base / "log", Path(sys.argv[2]))

server = run("first", {})["parent"]
assert server != os.getpid()
if sys.argv[3] == "ends":
    children = Path(f"/proc/{server}/task/{server}/children")
    while not (spare := children.read_text().split()):
        os.sched_yield()
    atexit.register(lambda: print(spare[0]))
if sys.argv[3] == "killed":
    processes = base / "processes"
    long = {"child": str(processes), "code": "threading.Event().wait(120)"}
    threading.Thread(target=run, args=("second", long), daemon=True).start()
    while not processes.exists() or len(processes.read_text().split()) < 2:
        os.sched_yield()
    # A process that holds everything open that was.
    holder = os.fork()
    if holder == 0:
        os.close(1)
        threading.Event().wait(60)
        os._exit(0)
    print(server, holder, flush=True)
    threading.Event().wait(100)
"""


def test_the_server_and_its_jobs_end_with_a_killed_host(jobs: Jobs, tmp_path: Path) -> None:
    base = tmp_path / "host"
    base.mkdir()
    command = [sys.executable, "-c", HOST, str(base), str(jobs.worker), "killed"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        server, holder = map(int, host.stdout.readline().split())
        try:
            processes = [int(word) for word in (base / "processes").read_text().split()]
            processes += children_of(server)
            assert all(map(alive, (server, *processes)))
            host.kill()
            host.wait()
            wait_until_gone(server, *processes)
            assert alive(holder)
        finally:
            os.kill(holder, signal.SIGKILL)


def test_the_server_ends_with_a_host_that_ends(jobs: Jobs, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", HOST, str(tmp_path), str(jobs.worker), "ends"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    spare, there = ended.stdout.split()
    # The host has waited for the server, and that for the process that it had for the next job.
    assert there == "False"
    assert not Path(f"/proc/{spare}").exists()
    assert ended.stderr == ""


def test_a_fork_of_the_host_has_a_server_of_its_own(jobs: Jobs) -> None:
    code = textwrap.dedent(
        f"""
        import json, os, sys
        from pathlib import Path
        from pytest_rknpu.toolchain import fork_server
        from pytest_rknpu.toolchain.process import run_child

        def server(name):
            folder = Path({str(jobs.base)!r}, name)
            folder.mkdir()
            worker = Path({str(jobs.worker)!r})
            return run_child({{}}, folder, "the job", 60, folder / "log", worker)["parent"]

        first = server("one")
        # As if another thread were just getting a server.
        fork_server._current.lock.acquire()
        child = os.fork()
        if child == 0:
            print(server("two"), flush=True)
            sys.exit(0)
        fork_server._current.lock.release()
        assert os.waitpid(child, 0)[1] == 0
        assert server("three") == first
        print(first)
        """
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    childs, own = map(int, ended.stdout.split())
    assert childs != own
    assert not alive(childs)
    assert not alive(own)


def test_interrupted_waiting_leaves_no_job(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C: whatever exception ends the waiting, the job's processes end with it."""
    before, processes = jobs(), tmp_path / "processes"
    receive = fork_server._receive
    interrupted = []

    def interrupting(connection: Any, end: float) -> bytes:
        message = receive(connection, end)
        if message == fork_server.STARTED and not interrupted:
            while not processes.exists() or len(processes.read_text().split()) < 2:
                assert time.monotonic() < end
            interrupted.append(True)
            raise KeyboardInterrupt
        return message

    monkeypatch.setattr(fork_server, "_receive", interrupting)
    with pytest.raises(KeyboardInterrupt):
        jobs(child=str(processes), code="threading.Event().wait(120)")
    wait_until_gone(*map(int, processes.read_text().split()))
    assert jobs()["parent"] == before["parent"]
