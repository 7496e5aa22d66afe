"""Imports RKNN-Toolkit2 once and forks a process per job: ``python fork_server.py CONTROL HOST``.

CONTROL is the number of a socket from which jobs come, each with a socket of its own; HOST is the process
that they come from. On a job's socket go out STARTED and, when the job's process has ended, its status; its
other end's closing ends the job. The server ends with CONTROL and its last job, or with HOST. It never
touches the toolkit after the import and has no thread, so that each job starts as a process does that has
just imported the toolkit.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

# pytest_rknpu.toolchain.fork_server reads them.
STARTED, REFUSED, STATUS = b"started", b"refused", struct.Struct("<i")
LARGEST_JOB = 1 << 16
_PR_SET_PDEATHSIG = 1
_THREADS_END_S = 1.0


@dataclass
class Job:
    """A running job: its process, what shows that it has ended, and the socket to whoever asked for it."""

    process: int
    exit: int
    asker: socket.socket
    abandoned: bool = False

    def kill(self) -> None:
        """Ends the job's whole process group. Its process is a zombie at worst, so the number is its own."""
        self.abandoned = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
            os.killpg(self.process, signal.SIGKILL)

    def reap(self) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        with contextlib.suppress(OSError):
            self.asker.send(STATUS.pack(status))
        self.close()

    def close(self) -> None:
        os.close(self.exit)
        self.asker.close()


def serve(control: socket.socket, host: int) -> dict[str, Any] | None:
    """Runs until there is nothing left to do, then returns None; in each job's process, returns the job."""
    jobs: list[Job] = []
    accepting = True
    while accepting or jobs:
        askers = [job.asker for job in jobs if not job.abandoned]
        watched: list[int | socket.socket] = [
            host,
            *([control] if accepting else []),
            *(job.exit for job in jobs),
            *askers,
        ]
        ready = select.select(watched, [], [])[0]
        for job in jobs:
            if host in ready or (job.asker in ready and job.exit not in ready):
                job.kill()
            if host in ready or job.exit in ready:
                job.reap()
        jobs = [job for job in jobs if job.asker.fileno() >= 0]
        if host in ready:
            return None
        if control in ready:
            message, descriptors, _, _ = socket.recv_fds(control, LARGEST_JOB, 1)
            accepting = bool(message)
            if descriptors and _fork(socket.socket(fileno=descriptors[0]), jobs):
                for job in jobs:
                    job.close()
                control.close()
                os.close(host)
                request: dict[str, Any] = json.loads(message)
                return request
    return None


def _fork(asker: socket.socket, jobs: list[Job]) -> bool:
    """Adds a job; True in its process. A job whose asker has gone meanwhile is not started."""
    if select.select([asker], [], [], 0)[0]:
        asker.close()
        return False
    server = os.getpid()
    try:
        process = os.fork()
    except OSError:
        asker.send(REFUSED)
        asker.close()
        return False
    if process:
        jobs.append(Job(process, os.pidfd_open(process), asker))
        with contextlib.suppress(OSError):
            asker.send(STARTED)
        return False
    asker.close()
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != server:
        os._exit(1)
    return True


def become(job: dict[str, Any], printed: bytes) -> None:
    """Makes this process what one would be that was started for the job alone."""
    os.chdir(job["folder"])
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.write(1, printed)
    for name, value in job["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    tempfile.tempdir = None
    # Python's own generator is seeded anew by a fork, numpy's is not.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    sys.argv = [job["worker"], job["request"]]
    sys.path[0] = os.path.dirname(job["worker"])


def without_threads() -> bool:
    """Whether a fork leaves this process without threads.

    OpenBLAS, in numpy and in scipy, ends its threads before a fork and starts them when they are next needed.
    Any other thread could hold a lock that a job would wait for for ever.
    """
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    end = time.monotonic() + _THREADS_END_S
    while (threads := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < end:
        time.sleep(0.01)  # A thread that was joined is listed a moment longer.
    return threads == 1


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    host = os.pidfd_open(int(sys.argv[2]))
    if os.getppid() != int(sys.argv[2]):
        os._exit(1)
    importlib.import_module("rknn.api")
    if not without_threads():
        os._exit(1)
    printed = os.pread(1, os.fstat(1).st_size, 0)
    # What is there now stays: without this a job's first collection would copy nearly all of it.
    gc.freeze()
    job = serve(control, host)
    if job is None:
        os._exit(0)
    become(job, printed)
    # In the name of the script, and to the interpreter's ordinary end: as if started with it.
    runpy.run_path(job["worker"], run_name="__main__")


if __name__ == "__main__":
    main()
