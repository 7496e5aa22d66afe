"""Jobs of a worker that does what its request says, and the processes that they leave or do not."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rknpu.toolchain.process import run_child

GONE_S = 20.0

#: A worker that does what its request says and tells about its process.
WORKER = """
import json, os, random, signal, sys, tempfile, threading
import numpy, rknn.api

request = json.load(open(sys.argv[1]))
if request.get("child"):
    child = os.fork()
    if child == 0:
        threading.Event().wait(120)
    open(request["child"], "w").write(f"{os.getpid()} {child}")
exec(request.get("code", ""))

def target(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:
        return ""

reply = {
    "ok": True, "pid": os.getpid(), "parent": os.getppid(), "group": os.getpgid(0), "session": os.getsid(0),
    "folder": os.getcwd(), "argv": sys.argv, "path": sys.path[0], "name": __name__,
    "temporary": tempfile.gettempdir(), "environment": dict(os.environ), "toolkit": rknn.api.__file__,
    "random": [random.random(), float(numpy.random.random())], "touched": hasattr(rknn.api, "touched"),
    "open": sorted(filter(os.path.exists, map(target, os.listdir("/proc/self/fd")))),
    "out": [target(n) for n in range(3)], "descriptors": len(os.listdir("/proc/self/fd")),
}
rknn.api.touched = True
open(request["reply"], "w").write(json.dumps(reply))
exec(request.get("after", ""))
"""


class Jobs:
    """Runs jobs of WORKER, each in a folder of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.worker = base / "its_worker.py"
        self.worker.write_text(WORKER)
        self.count = 0

    def __call__(self, deadline_s: float = 60.0, **request: str) -> Mapping[str, Any]:
        self.count += 1
        folder = self.base / f"job{self.count}"
        folder.mkdir()
        return run_child(request, folder, "the job", deadline_s, folder.with_suffix(".log"), self.worker)


def alive(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def wait_until_gone(*processes: int) -> None:
    end = time.monotonic() + GONE_S
    while any(map(alive, processes)):
        assert time.monotonic() < end, f"still there: {[p for p in processes if alive(p)]}"
        os.sched_yield()


def children_of(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def spare_of(server: int) -> int:
    """The process that waits for the next job."""
    end = time.monotonic() + GONE_S
    while len(spares := [child for child in children_of(server) if alive(child)]) != 1:
        assert time.monotonic() < end, f"children of the server: {spares}"
        os.sched_yield()
    return spares[0]
