"""What this plugin costs a pytest run that has nothing to do with boards.

Runs pytest on a small project with and without the plugin, in turns, so that a busy or a throttled machine
hits both alike. Prints medians of wall time and of processor time (which a busy machine disturbs less), their
difference and ratio, a bootstrap interval of the difference, and the fastest runs: those disturbed least.

    python benchmarks/plugin_cost.py [--pairs 40] [--tests 100]
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WITHOUT = ("-p", "no:rknpu")
PROJECT = """
import pytest

@pytest.mark.parametrize("n", range({tests}))
def test_it(n):
    pass
"""


def seconds_of(folder: Path, extra: tuple[str, ...]) -> tuple[float, float]:
    """Wall and processor time of one run. Bytecode is cached, as it is for users."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *extra]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    used, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, now = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def interval(differences: list[float], rounds: int = 2000) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median difference."""
    draws = random.Random(0)
    medians = sorted(statistics.median(draws.choices(differences, k=len(differences))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def measure(folder: Path, pairs: int) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Times with and without the plugin; who goes first changes from pair to pair."""
    measured = []
    for turn in range(pairs):
        order = ((), WITHOUT) if turn % 2 else (WITHOUT, ())
        times = {extra: seconds_of(folder, extra) for extra in order}
        measured.append((times[()], times[WITHOUT]))
    return measured


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Cost of the plugin for a run without boards.")
    parser.add_argument("--pairs", type=int, default=40, help="runs with and without, each (default 40)")
    parser.add_argument("--tests", type=int, default=100, help="tests in the project (default 100)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_small.py").write_text(PROJECT.format(tests=options.tests), encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        measure(folder, 1)  # fills the caches of bytecode and of the file system
        pairs = measure(folder, options.pairs)
    print(f"{options.pairs} pairs, {options.tests} tests; medians")
    for place, kind in enumerate(("wall time", "processor time")):
        on, off = (statistics.median(run[place] for run in runs) for runs in zip(*pairs, strict=True))
        differences = [1000 * (first[place] - second[place]) for first, second in pairs]
        low, high = interval(differences)
        print(f"{kind:15} with {1000 * on:7.1f} ms, without {1000 * off:7.1f} ms, ratio {on / off:.3f}")
        print(f"{'':15} difference {statistics.median(differences):.1f} ms (95 % {low:.1f} to {high:.1f})")
        best = [1000 * min(run[place] for run in runs) for runs in zip(*pairs, strict=True)]
        fastest = f"{best[0]:.1f} and {best[1]:.1f} ms, difference {best[0] - best[1]:.1f} ms"
        print(f"{'':15} fastest of each: {fastest}")


if __name__ == "__main__":
    main()
