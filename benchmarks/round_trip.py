"""Prints what a command list costs: its round trip over the link, and its commands in a loop on the board.

    python benchmarks/round_trip.py [--python PYTHON]

The runtime is the tests' fake one (tests/agent/fake_runtime.c: a run adds one to 256 bytes), compiled here
with gcc, so that the figures are those of link and binding alone. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import execnet

from pytest_rknpu.agent import bootstrap_source, sources

SOURCE = Path(__file__).parents[1] / "tests" / "agent" / "fake_runtime.c"
ITERATIONS = 3000
Ask = Callable[..., dict[str, Any]]


def microseconds(action: Callable[[], object], count: int) -> str:
    """Median and 95th percentile of the action's wall time."""
    action()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        times.append((time.perf_counter() - begin) * 1e6)
    cuts = statistics.quantiles(times, n=20)
    return f"median {statistics.median(times):10.1f} us   95 % {cuts[-1]:10.1f} us   ({count} times)"


def per_iteration(ask: Ask, *commands: dict[str, Any], blobs: dict[str, bytes]) -> str:
    """Time per iteration of a loop over the commands, by the agent's own clock."""
    loop = {"op": "repeat", "count": ITERATIONS, "commands": list(commands)}
    reply = ask("execute", program={"commands": [loop], "blobs": blobs})
    if not reply["ok"]:
        raise SystemExit(reply["error"]["message"])
    return f"{reply['duration_ns'] / 1000 / ITERATIONS:10.2f} us per iteration   ({ITERATIONS} iterations)"


def prepare(ask: Ask, library: str, folder: str) -> None:
    """A context with bound memories, and a large memory for copies."""
    ask("start", library={"kind": "shared-object", "path": library}, model_cache=folder)
    tensor = {"n_dims": 1, "dims": [256], "size_with_stride": 256}
    commands = [
        {"op": "init", "context": "c", "data": "model"},
        {"op": "create_mem", "memory": "in", "context": "c", "size": 256},
        {"op": "create_mem", "memory": "out", "context": "c", "size": 256},
        {"op": "create_mem", "memory": "large", "context": "c", "size": 150528},
        {"op": "bind", "context": "c", "memory": "in", "attr": {**tensor, "name": "input"}},
        {"op": "bind", "context": "c", "memory": "out", "attr": {**tensor, "name": "output"}},
    ]
    if not ask("execute", program={"commands": commands, "blobs": {"model": b"FAKE"}})["ok"]:
        raise SystemExit("the fake runtime does not work")


def report(ask: Ask) -> None:
    """Print all figures."""
    large = {"large": bytes(150528)}
    write = {"op": "write", "memory": "in", "cycle": ["a", "b"]}
    compare = {"op": "compare", "memory": "out", "cycle": ["a+1", "b+1"], "save": "verdict"}
    run = {"op": "run", "context": "c"}
    to_device = {"op": "sync", "memory": "in", "context": "c", "mode": 1}
    from_device = {"op": "sync", "memory": "out", "context": "c", "mode": 2}
    blobs = {"a": bytes(256), "a+1": b"\1" * 256, "b": b"\5" * 256, "b+1": b"\6" * 256}
    copies = [
        {"op": "write", "memory": "large", "data": "large"},
        {"op": "compare", "memory": "large", "data": "large", "save": "verdict"},
    ]
    child = {"op": "child", "commands": [], "save": "child"}
    print(
        "round trip, empty list        ", microseconds(lambda: ask("execute", program={"commands": []}), 1000)
    )
    with_blob = {"commands": copies, "blobs": large}
    print("round trip, blob of 147 KiB   ", microseconds(lambda: ask("execute", program=with_blob), 100))
    print(
        "child process, empty list     ",
        microseconds(lambda: ask("execute", program={"commands": [child]}), 20),
    )
    print("run                           ", per_iteration(ask, run, blobs={}))
    print("sync                          ", per_iteration(ask, to_device, blobs={}))
    hand_over = (write, to_device, run, from_device, compare)
    print("write, sync, run, sync, compare", per_iteration(ask, *hand_over, blobs=blobs)[1:])
    print("write, compare of 147 KiB     ", per_iteration(ask, *copies, blobs=large))


def main() -> None:
    """Compile the fake runtime, ship the agent, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter of the far side")
    python = parser.parse_args().python
    group = execnet.Group()
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/librknnrt.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, str(SOURCE)], check=True)
        begin = time.perf_counter()
        channel = group.makegateway(f"popen//python={python}").remote_exec(bootstrap_source())
        channel.send(json.dumps(sources()))

        def ask(request: str, **keys: Any) -> dict[str, Any]:
            channel.send({"request": request, **keys})
            reply: dict[str, Any] = channel.receive(60)
            return reply

        prepare(ask, library, folder)
        print(f"start of interpreter and agent {(time.perf_counter() - begin) * 1000:9.1f} ms   ({python})")
        report(ask)
        group.terminate(timeout=2)


if __name__ == "__main__":
    main()
