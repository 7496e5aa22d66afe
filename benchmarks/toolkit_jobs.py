"""Prints what a job of RKNN-Toolkit2 costs, forked from the server and in a process that imports it itself.

    python benchmarks/toolkit_jobs.py [--rounds 5]

Each round simulates one sample of a small model both ways, in turns, so that a busy machine hits both alike.
Wall time, and processor time of this process's children and of the server's jobs. The server's own start is
printed apart: it is paid once. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pytest_rknpu import models
from pytest_rknpu.toolchain import CompileOptions, fork_server, simulate
from pytest_rknpu.toolchain.process import run_forked

MODEL = models.load("probe_pointwise")
Cost = tuple[float, float]


def server_seconds() -> float:
    """Processor time of the server and of the jobs that it has reaped (proc(5): utime to cstime)."""
    server = fork_server._current.server
    if server is None:
        return 0.0
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def cost(run: Callable[..., Any]) -> Cost:
    """Wall and processor time of one simulation whose worker is run by ``run``."""

    def seconds() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime + server_seconds()

    begin, used = time.perf_counter(), seconds()
    with patch("pytest_rknpu.toolchain.process.run_forked", run):
        simulate(MODEL.float_onnx, CompileOptions("rk3588", MODEL.calibration), [MODEL.calibration[:1]])
    return time.perf_counter() - begin, seconds() - used


def no_server(*_: object) -> None:
    """What run_forked says where no server is to be had."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    cost(no_server)
    first = cost(run_forked)
    if fork_server._current.server is None:
        raise SystemExit("no server could be started; every job would be a fresh one")
    print(f"first forked job, with the server's start: wall {first[0]:.2f} s, processor {first[1]:.2f} s")
    pairs = [(cost(no_server), cost(run_forked)) for _ in range(rounds)]
    for index, kind in enumerate(("wall", "processor")):
        fresh = statistics.median(pair[0][index] for pair in pairs)
        forked = statistics.median(pair[1][index] for pair in pairs)
        ratio = statistics.median(pair[1][index] / pair[0][index] for pair in pairs)
        print(f"{kind:9}  fresh {fresh:.2f} s   forked {forked:.2f} s   forked/fresh {ratio:.2f}")
    print(f"medians of {rounds} rounds")


if __name__ == "__main__":
    main()
