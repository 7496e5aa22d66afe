"""Prints what the agent's timing loop adds to a run, against a C loop over the same function.

    python benchmarks/timing_loop.py [--python PYTHON]

The function is a fake ``rknn_run`` that spins for one millisecond. C times it with clock_gettime around each
call; the agent times it with its command ``time_runs``. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import execnet

from pytest_rknpu.agent import bootstrap_source, sources

SOURCE = r"""
#include <stdint.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int rknn_run(uint64_t context, void *extend) {
    int64_t end = now() + 1000000;
    while (now() < end) {}
    return 0;
}

int rknn_init(uint64_t *context, void *model, uint32_t size, uint32_t flags, void *extend) {
    *context = 1;
    return 0;
}

int rknn_destroy(uint64_t context) {
    return 0;
}

void c_loop(int64_t *samples, int count, int64_t *whole) {
    int64_t begin = now();
    for (int run = 0; run < count; run++) {
        int64_t start = now();
        rknn_run(1, 0);
        samples[run] = now() - start;
    }
    *whole = now() - begin;
}
"""
RUNS = 3000
NO_OPS = 100_000


def go_first() -> None:
    """Run before everything else on this host, where that is permitted."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def line(name: str, samples: Sequence[int], whole_ns: int) -> float:
    """Print medians, the upper percentiles and the time per round; returns the median in us."""
    cuts = statistics.quantiles(samples, n=100)
    median = statistics.median(samples) / 1000
    print(
        f"{name:16} median {median:9.3f} us   p95 {cuts[94] / 1000:9.3f}   p99 {cuts[98] / 1000:9.3f}   "
        f"per round {whole_ns / len(samples) / 1000:9.3f}"
    )
    return median


def in_c(library: str) -> float:
    """Time the function in C."""
    loop = ctypes.CDLL(library).c_loop
    samples, whole = (ctypes.c_int64 * RUNS)(), ctypes.c_int64()
    loop(samples, RUNS, ctypes.byref(whole))
    return line("C loop", list(samples), whole.value)


def in_the_agent(library: str, python: str, folder: str) -> float:
    """Time it with the agent, shipped to ``python`` as a session does it."""
    group = execnet.Group()
    channel = group.makegateway(f"popen//python={python}").remote_exec(bootstrap_source())
    channel.send(json.dumps(sources()))

    def ask(request: str, **keys: Any) -> dict[str, Any]:
        channel.send({"request": request, **keys})
        reply: dict[str, Any] = channel.receive(120)
        if not reply["ok"]:
            raise SystemExit(reply["error"]["message"])
        return reply

    ask("start", library={"kind": "shared-object", "path": library}, model_cache=folder)
    commands = [
        {"op": "init", "context": "c", "data": "model"},
        {"op": "time_no_op", "count": NO_OPS, "save": "no-op"},
        {"op": "time_runs", "contexts": ["c"], "count": RUNS, "warm_up": 10, "save": "runs"},
    ]
    values = ask("execute", program={"commands": commands, "blobs": {"model": b"x"}})["values"]
    group.terminate(timeout=2)
    for name in ("no-op", "runs"):
        found = values[name]
        whole = found["ended_ns"] - found["started_ns"]
        median = line(f"agent, {name}", found["wall_ns"], whole)
    return median


def main() -> None:
    """Compile, time both ways, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the far side")
    python = parser.parse_args().python
    go_first()
    with tempfile.TemporaryDirectory() as folder:
        library, source = f"{folder}/librknnrt.so", Path(folder, "fake.c")
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, str(source)], check=True)
        print(f"{RUNS} runs of 1 ms, agent in {python}")
        own, theirs = in_c(library), in_the_agent(library, python, folder)
        print(f"the loop adds {theirs - own:.3f} us per run, {100 * (theirs - own) / own:.3f} %")


if __name__ == "__main__":
    main()
