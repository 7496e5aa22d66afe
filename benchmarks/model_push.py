"""Prints how long a model takes to a board over ssh, the first time and again, against the bare link.

    python benchmarks/model_push.py [--megabytes 64] [--rounds 5]

The board is this host behind a real sshd on the loopback address (tests/loopback_sshd.py), its runtime the
tests' fake one: what is measured is ssh's own work and this package's. "bare" is the same bytes by
``ssh HOST 'cat > FILE'``, its connection made beforehand like the session's. Look at the ratios: times are
those of this machine. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from loopback_sshd import Sshd, running_sshd  # noqa: E402  # the tests' own, by the path above

from pytest_rknpu.inventory.schema import Board  # noqa: E402
from pytest_rknpu.session.board_session import connect  # noqa: E402

FIRST_BYTE = b"#"


def board(sshd: Sshd, library: Path, cache: Path) -> Board:
    """This host, as a board over ssh."""
    return Board(
        name="loopback",
        soc="rk3588",
        runtime="librknnrt",
        transport="ssh",
        host="desk-board",
        ssh_config=str(sshd.config),
        python=sys.executable,
        library=str(library),
        model_cache=str(cache),
    )


def seconds_to_store(target: Board, model: bytes) -> float:
    """In a session of its own; connecting is not part of it."""
    with ExitStack() as resources:
        session = connect(target, seed=1, resources=resources)
        begin = time.perf_counter()
        session.store_model(model)
        return time.perf_counter() - begin


def bare_seconds(sshd: Sshd, model: bytes, file: Path) -> float:
    """The same bytes through ssh alone, to a file that is flushed to disk."""
    script = f"head -c 1 > /dev/null; echo ready; cat > {file}; sync {file}; echo done"
    command = ["ssh", "-F", str(sshd.config), "desk-board", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as link:
        assert link.stdin is not None
        assert link.stdout is not None
        link.stdin.write(FIRST_BYTE)
        link.stdin.flush()
        link.stdout.readline()
        begin = time.perf_counter()
        link.stdin.write(model)
        link.stdin.close()
        link.stdout.readline()
        return time.perf_counter() - begin


def measure(folder: Path, megabytes: int, rounds: int) -> dict[str, float]:
    """Median seconds of each way, taken in turn so that what else the machine does hits them alike."""
    library = folder / "librknnrt.so"
    source = ROOT / "tests" / "agent" / "fake_runtime.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
    times: dict[str, list[float]] = {"bare": [], "cold": [], "warm": []}
    with running_sshd(folder) as sshd:
        for _ in range(rounds):
            model = b"FAKE" + os.urandom(megabytes * 10**6)
            target = board(sshd, library, folder / "models")
            times["bare"].append(bare_seconds(sshd, model, folder / "bare"))
            times["cold"].append(seconds_to_store(target, model))
            times["warm"].append(seconds_to_store(target, model))
            shutil.rmtree(folder / "models")
    return {way: statistics.median(found) for way, found in times.items()}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        median = measure(Path(folder), options.megabytes, options.rounds)
    for way, seconds in median.items():
        rate = options.megabytes / seconds
        print(f"{way}: {seconds:7.3f} s  {rate:8.1f} MB/s  {seconds / median['bare']:6.3f} times bare")
    print(f"cold to warm: {median['cold'] / median['warm']:.1f}")


if __name__ == "__main__":
    main()
