"""How long `rknpu history` takes for many runs: cold, and warm from its database.

    python benchmarks/history_of_runs.py --runs 1000 --tests 500

Runs are made up: each has that many results on four boards, and four times 1,000
samples of latency. One test in ten fails now and then; with --all every one does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from history.many_runs import latency, run, shown, write  # the path comes first

from pytest_rknpu.cli.app import run as rknpu
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import REQUIREMENTS, Outcome

_BOARDS = ("rk-1", "rk-2", "rk-3", "rk-4")


def main() -> None:
    """Make the runs, read them twice, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--all", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(chosen.runs):
            write(root / "ci" / f"{number:05}", run(number, *_results(number, chosen.tests, chosen.all)))
        size = sum(file.stat().st_size for file in root.rglob("*.jsonl"))
        print(f"{chosen.runs} runs of {chosen.tests} tests, {size >> 20} MiB")
        database = root / "h.sqlite"
        for what in ("cold", "warm", "warm, JSON", "warm, page"):
            more = {"warm, JSON": ["--json"], "warm, page": ["--html", str(root / "h.html")]}.get(what, [])
            started = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                rknpu(["history", str(root / "ci"), "--database", str(database), *more])
            print(f"{what}: {time.perf_counter() - started:.2f} s")
        print(f"database: {database.stat().st_size >> 20} MiB")


def _results(number: int, tests: int, every: bool) -> list[Result]:
    dice = random.Random(number)
    versions = {"runtime": f"2.{number // 50}.0"}
    ids = list(REQUIREMENTS)
    found = [latency(2.0, number, board=board, versions=versions) for board in _BOARDS]
    for place in range(tests - len(found)):
        board = _BOARDS[place % len(_BOARDS)]
        failing = dice.random() < 0.02 and (every or place % 10 == 0)
        found.append(
            shown(
                Outcome.FAIL if failing else Outcome.PASS,
                f"t{place // len(_BOARDS)}",
                board=board,
                requirement=(ids[place // len(_BOARDS) % len(ids)],),
                versions=versions,
            )
        )
    return found


if __name__ == "__main__":
    main()
