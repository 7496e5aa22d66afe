"""What this plugin costs a pytest run that has nothing to do with boards.

Runs pytest on a small project with and without the plugin, in turns, so that a busy or a throttled machine hits
both alike, and prints the medians, their difference and ratio, and a bootstrap interval of the difference.

    python benchmarks/plugin_cost.py [--pairs 40] [--tests 100]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WITHOUT = ("-p", "no:rknpu")


def seconds_of(folder: Path, extra: tuple[str, ...]) -> float:
    """Wall time of one run. Bytecode is allowed, as it is for users."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *extra]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def interval(differences: list[float], rounds: int = 2000) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median difference."""
    draws = random.Random(0)
    medians = sorted(statistics.median(draws.choices(differences, k=len(differences))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=40, help="runs with and without, each (default 40)")
    parser.add_argument("--tests", type=int, default=100, help="tests in the project (default 100)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        body = f"import pytest\n@pytest.mark.parametrize('n', range({options.tests}))\ndef test_it(n):\n    pass\n"
        (folder / "test_small.py").write_text(body, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for extra in ((), WITHOUT):  # fill the caches of bytecode and of the file system
            seconds_of(folder, extra)
        pairs = []
        for turn in range(options.pairs):
            order = ((), WITHOUT) if turn % 2 else (WITHOUT, ())
            times = {extra: seconds_of(folder, extra) for extra in order}
            pairs.append((times[()], times[WITHOUT]))
    on, off = (statistics.median(times) for times in zip(*pairs, strict=True))
    differences = [1000 * (first - second) for first, second in pairs]
    low, high = interval(differences)
    print(f"{options.pairs} pairs, {options.tests} tests")
    print(f"with plugin    {1000 * on:8.1f} ms (median)")
    print(f"without        {1000 * off:8.1f} ms")
    print(f"difference     {statistics.median(differences):8.1f} ms (95 % interval {low:.1f} to {high:.1f})")
    print(f"ratio          {on / off:8.3f}")


if __name__ == "__main__":
    main()
