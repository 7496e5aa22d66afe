"""Runs SYNC and MEM on emulated boards behind real sshds: one over ssh, one as a place of a labgrid farm.

    python tests/farm_suites.py [pytest's options]

Fails where pytest does, where a board was used twice at once, and where the two boards come to other ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from labgrid_farm import Farm, labgrid_scripts, running_farm

CLONE = Path(__file__).parents[1]
OVER_SSH, OVER_LABGRID = "over-ssh", "over-labgrid"


def boards_of(farm: Farm) -> str:
    """One board by the address of its sshd, one by its place."""
    address = "\n".join(
        [
            "[[board]]",
            f'name = "{OVER_SSH}"',
            'soc = "rk3588"',
            'runtime = "emulator"',
            'transport = "ssh"',
            'host = "127.0.0.1"',
            f"port = {farm.boards['shelf-0'].port}",
            f'ssh_config = "{farm.ssh_config}"',
            f'python = "{sys.executable}"',
            "\n",
        ]
    )
    return address + farm.board(OVER_LABGRID, 'place = "shelf-1"')


def outcomes(report: Path, board: str) -> dict[str, str]:
    """The outcome of each test of a board."""
    tests = map(json.loads, (report / "results.jsonl").read_text(encoding="utf-8").splitlines()[1:])
    return {
        test["nodeid"].replace(board, "board"): test["outcome"] for test in tests if test["board"] == board
    }


def main() -> None:
    """Start the farm, run the suites with a worker for each board, compare."""
    scripts = labgrid_scripts()
    if scripts is None:
        raise SystemExit("labgrid is not installed; install it with: pipx install labgrid")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_farm(
            folder, scripts, {f"shelf-{number}": {"soc": "rk3588"} for number in range(2)}
        ) as farm:
            (folder / "boards.toml").write_text(boards_of(farm), encoding="utf-8")
            command = [sys.executable, "-m", "pytest", "suites/sync", "suites/memory", "-n", "2"]
            options = ["--boards", str(folder / "boards.toml"), "--rknpu-report", str(folder / "out")]
            run = subprocess.run([*command, *options, *sys.argv[1:]], cwd=CLONE, check=False)
            left = farm.holders()
            twice = farm.used_twice()
        first, second = (outcomes(folder / "out", board) for board in (OVER_SSH, OVER_LABGRID))
    differing = [test for test in first | second if first.get(test) != second.get(test)]
    print(f"{len(first)} tests on each board; still held: {left or 'none'}; used twice: {twice or 'none'}")
    print(f"other outcomes over labgrid than over ssh: {', '.join(differing) or 'none'}")
    if run.returncode or left or twice or differing or not first:
        raise SystemExit(run.returncode or 1)


if __name__ == "__main__":
    main()
