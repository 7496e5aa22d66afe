"""Prints how long eight boards take with one worker and with eight; inference sleeps, as the host does.

    python benchmarks/boards_at_once.py [--seconds N] [--boards N]

The boards are emulated ones with the latency model `steady`: a run really waits. More workers do not make
the work of this host faster: starting pytest, opening boards. So two ratios are printed, that of the whole
commands, and that of the time from the first test to the last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

BOARD = '[[board]]\nname = "board-{}"\nsoc = "rk3588"\nruntime = "emulator"\nlatency_model = "steady"\n\n'
TESTS_PER_BOARD = 5
RUN_SECONDS = 0.0064  # of the model with two layers under `steady` (pytest_rknpu/emulator/latency.py)
TEST = """
import pathlib, time
import pytest
from pytest_rknpu.session import Program, ZeroCopy

@pytest.mark.parametrize("n", range({tests}))
def test_inference(npu, n):
    io = ZeroCopy("a", npu.model("probe_pointwise"))
    program = Program()
    io.open(program)
    with program.repeat({runs}):
        program.run("a")
    begin = time.time()
    npu.session.execute(program, deadline_s=600)
    with pathlib.Path("times").open("a") as file:
        file.write(f"{{begin}} {{time.time()}}\\n")
"""


@dataclass(frozen=True)
class Taken:
    """Seconds of the whole command, and from the first test to the last."""

    command: float
    tests: float


def run(folder: Path, workers: int) -> Taken:
    """All boards with that many workers. Fails where a test did not pass."""
    (folder / "times").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "--boards", "boards.toml", "-p", "no:cacheprovider", "-q"]
    begin = time.perf_counter()
    subprocess.run(
        [*command, "-n", str(workers), "--rknpu-report", "out"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    took = time.perf_counter() - begin
    lines = (folder / "out/results.jsonl").read_text().splitlines()[1:]
    assert all(json.loads(line)["outcome"] == "pass" for line in lines)
    spans = [tuple(map(float, line.split())) for line in (folder / "times").read_text().splitlines()]
    assert len(spans) == len(lines)
    return Taken(took, max(end for _, end in spans) - min(start for start, _ in spans))


def main() -> None:
    """Run with one worker, then with one for each board."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of inference on each board")
    parser.add_argument("--boards", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "boards.toml").write_text("".join(map(BOARD.format, range(options.boards))))
        each = options.seconds / TESTS_PER_BOARD
        (folder / "test_inference.py").write_text(
            TEST.format(tests=TESTS_PER_BOARD, runs=int(each / RUN_SECONDS))
        )
        one, all_ = run(folder, 1), run(folder, options.boards)
    for workers, taken in ((1, one), (options.boards, all_)):
        print(f"-n {workers}: whole command {taken.command:7.1f} s, tests {taken.tests:7.1f} s")
    print(f"ratio: whole command {one.command / all_.command:.2f}, tests {one.tests / all_.tests:.2f}")


if __name__ == "__main__":
    main()
