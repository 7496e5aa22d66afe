"""Imports RKNN-Toolkit2 once and forks a process per job: ``python fork_server.py CONTROL HOST``.

CONTROL is the number of a socket from which jobs come, each with a socket of its own; HOST is the process
that they come from. On a job's socket go out STARTED and, when the job has ended, its status; its other end's
closing ends the job. The server ends with CONTROL and its last job, or with HOST. It never touches the
toolkit after the import and has no thread, so that each job starts as a process does that has just imported
the toolkit. The process of the next job is forked ahead, while others run.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

# pytest_rknpu.toolchain.fork_server reads them.
STARTED, REFUSED, STATUS = b"started", b"refused", struct.Struct("<i")
LARGEST_JOB = 1 << 16
_PR_SET_PDEATHSIG = 1
_THREADS_END_S = 1.0
#: What RKNN-Toolkit2 2.5.0 imports with its first calls only.
_LATER = ("pkg_resources", "onnxruntime", "multiprocessing.synchronize")


@dataclass
class Process:
    """A forked process that waits for its job on the other end of ``channel``; ``exit`` shows its end."""

    number: int
    exit: int
    channel: socket.socket

    def close(self) -> None:
        os.close(self.exit)
        self.channel.close()

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)
        os.waitpid(self.number, 0)
        self.close()


@dataclass
class Job:
    """A running job: its process, and the socket to whoever asked for it."""

    process: Process
    asker: socket.socket
    abandoned: bool = False

    def kill(self) -> None:
        """Ends the job's whole process group. Its process is a zombie at worst, so the number is its own."""
        self.abandoned = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.number, signal.SIGKILL)
            os.killpg(self.process.number, signal.SIGKILL)

    def reap(self) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(self.process.number, 0)[1])
        with contextlib.suppress(OSError):
            self.asker.send(STATUS.pack(status))
        self.close()

    def close(self) -> None:
        self.process.close()
        self.asker.close()


class Server:
    """Takes jobs from ``control`` until there are no more, or ``host`` (a pidfd) has ended."""

    def __init__(self, control: socket.socket, host: int) -> None:
        self.control = control
        self.host = host
        self.accepting = True
        self.jobs: list[Job] = []
        self.spare: Process | None = None

    def serve(self) -> tuple[dict[str, Any], socket.socket] | None:
        """None at the end; in each job's process, the job and the socket to its asker."""
        while self.accepting or self.jobs:
            if self.accepting and self.spare is None:
                channel = self._fork()
                if channel is not None:
                    return _received(channel)
            ready = select.select(self._watched(), [], [])[0]
            self._look_after_jobs(ready)
            if self.host in ready:
                break
            if self.spare is not None and self.spare.exit in ready:
                # Killed from outside. Another takes its place before the next job is accepted.
                self.spare.end()
                self.spare = None
            elif self.control in ready:
                self._accept()
        if self.spare is not None:
            self.spare.end()
        return None

    def _watched(self) -> list[int | socket.socket]:
        return [
            self.host,
            *([self.control] if self.accepting else []),
            *([self.spare.exit] if self.spare is not None else []),
            *(job.process.exit for job in self.jobs),
            *(job.asker for job in self.jobs if not job.abandoned),
        ]

    def _look_after_jobs(self, ready: list[Any]) -> None:
        for job in self.jobs:
            ended = job.process.exit in ready
            if self.host in ready or (job.asker in ready and not ended):
                job.kill()
            if self.host in ready or ended:
                job.reap()
        self.jobs = [job for job in self.jobs if job.asker.fileno() >= 0]

    def _accept(self) -> None:
        """Hands a job to the process that waits for it. One whose asker has gone meanwhile is dropped."""
        message, descriptors, _, _ = socket.recv_fds(self.control, LARGEST_JOB, 1)
        self.accepting = bool(message)
        if not descriptors:
            return
        asker = socket.socket(fileno=descriptors[0])
        if select.select([asker], [], [], 0)[0]:
            asker.close()
        elif self.spare is None:
            with contextlib.suppress(OSError):
                asker.send(REFUSED)
            asker.close()
        else:
            with contextlib.suppress(OSError):
                asker.send(STARTED)
                socket.send_fds(self.spare.channel, [message], [asker.fileno()])
            self.jobs.append(Job(self.spare, asker))
            self.spare = None

    def _fork(self) -> socket.socket | None:
        """Makes ``spare`` a new process, if the system has one; there, returns its channel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.getpid()
        try:
            number = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            return None
        if number:
            theirs.close()
            self.spare = Process(number, os.pidfd_open(number), ours)
            return None
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        for job in self.jobs:
            job.close()
        ours.close()
        self.control.close()
        os.close(self.host)
        return theirs


def _received(channel: socket.socket) -> tuple[dict[str, Any], socket.socket]:
    """Waits for the job; without one the process ends."""
    message, descriptors, _, _ = socket.recv_fds(channel, LARGEST_JOB, 1, socket.MSG_CMSG_CLOEXEC)
    if not descriptors:
        os._exit(0)
    channel.close()
    return json.loads(message), socket.socket(fileno=descriptors[0])


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


@lru_cache(maxsize=8)
def compiled(path: str, _changed: int) -> CodeType:
    with open(path, "rb") as file:
        return compile(file.read(), path, "exec")


def run_script(path: str) -> None:
    """As ``python path``, to the interpreter's ordinary end."""
    script = ModuleType("__main__")
    script.__file__ = path
    sys.modules["__main__"] = script
    exec(compiled(path, os.stat(path).st_mtime_ns), script.__dict__)


def tell_end(asker: socket.socket) -> None:
    """The job is over: its asker need not wait for its process, which still has its memory to give back."""
    with contextlib.suppress(OSError):
        asker.send(STATUS.pack(0))


def prepare() -> None:
    """Has ready what the toolkit's first call, load and build would else import and set up in each job.

    That is the work of other libraries; where one is not there, or is not made so, the job does it. And the
    jobs' scripts, compiled.
    """
    for name in _LATER:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for script in Path(__file__).parent.glob("*worker.py"):
        compiled(str(script), script.stat().st_mtime_ns)
    with contextlib.suppress(Exception):
        # Both register the schemas of all ONNX operators when they are first asked for one.
        sys.modules["onnx"].defs.has("Conv")
        sys.modules["onnxruntime"].capi.onnxruntime_pybind11_state.get_all_operator_schema()


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
    if TYPE_CHECKING:
        from pytest_rknpu.toolchain.child.ending import ending
    else:
        from ending import ending  # its neighbour; who wants the constants only does not find it

    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    host = os.pidfd_open(int(sys.argv[2]))
    if os.getppid() != int(sys.argv[2]):
        os._exit(1)
    importlib.import_module("rknn.api")
    prepare()
    if not without_threads():
        os._exit(1)
    printed = os.pread(1, os.fstat(1).st_size, 0)
    # What is there now stays: without this a job's first collection would copy nearly all of it.
    gc.freeze()
    taken = Server(control, host).serve()
    if taken is None:
        os._exit(0)
    job, asker = taken
    become(job, printed)
    ending.tell = partial(tell_end, asker)
    run_script(job["worker"])


if __name__ == "__main__":
    main()
