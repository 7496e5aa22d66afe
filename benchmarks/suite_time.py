"""How long `pytest suites` takes: 0, 1 and 2 workers, on chosen boards, warm or cold. Printed, not asserted.

python benchmarks/suite_time.py [--cold] [pytest options, such as --board 'emu*']
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(workers: int, options: list[str], cache: str | None) -> tuple[float, float, str]:
    """Wall seconds, processor seconds and pytest's last line of one run."""
    environment = {**os.environ, **({"RKNPU_CACHE_DIR": cache} if cache else {})}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "suites",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        str(workers),
        *options,
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, busy, (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]


def main() -> None:
    """Time each number of workers once, in one go, so that they can be compared."""
    options = sys.argv[1:]
    cold = "--cold" in options
    options = [option for option in options if option != "--cold"]
    for workers in (0, 1, 2):
        with tempfile.TemporaryDirectory() as cache:
            seconds, busy, last = run(workers, options, cache if cold else None)
        print(f"-n {workers}: {seconds:6.1f} s wall, {busy:6.1f} s processor  {last}", flush=True)


if __name__ == "__main__":
    main()
