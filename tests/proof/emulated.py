"""The suites on a broken emulated board: which test functions end red, by requirement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.proof.catalogue import LATENCY, Seeded
from tests.proof.toolchain_faults import Kills

ROOT = Path(__file__).resolve().parents[2]
# The board on which the most requirements apply.
_BOARD = '[[board]]\nname = "faulty"\nsoc = "rk3588"\nruntime = "emulator"\n'
_SUITES = ("sync", "memory", "errors", "versions", "accuracy/test_masks_agree.py")
_SEED = "1"
_RED = ("fail", "inconclusive", "infra", "harness")
# A budget that the steady latency model keeps, and what is late does not.
_BUDGET = '[[budget]]\nmodel = "digits_cnn"\nboard = "faulty"\np50_ms = 100.0\nsamples = 200\n'


def kills_of(seeded: Seeded, *, only_named: bool) -> Kills:
    """Run the suites with the fault; ``only_named``: the tests of its own requirements alone.

    Raises RuntimeError where the run does not come to results.
    """
    played = seeded.layer == LATENCY
    option = "--rknpu-latency-model" if played else "--rknpu-fault"
    arguments = [option, seeded.name, "--rknpu-effort", seeded.effort, "--rknpu-seed", _SEED]
    if only_named or played:
        arguments += [word for id in seeded.requirements for word in ("--requirement", id)]
    suites = ("latency", "sync") if played else _SUITES
    return _red(run_boards(suites, arguments, _BOARD + (_BUDGET if played else "")))


def _red(records: Iterable[dict[str, object]]) -> Kills:
    kills: Kills = {}
    for record in records:
        if record["outcome"] not in _RED:
            continue
        function = str(record["nodeid"]).rpartition("::")[2].partition("[")[0]
        for id in record["requirement"]:  # type: ignore[attr-defined]
            seen = kills.setdefault(id, {})
            # Of one test's items the worst counts.
            seen[function] = min(seen.get(function, _RED[-1]), str(record["outcome"]), key=_RED.index)
    return {id: dict(sorted(kills[id].items())) for id in sorted(kills)}


def run_boards(suites: Sequence[str], arguments: Sequence[str], boards: str) -> list[dict[str, object]]:
    """The records of a run of these suites. Raises RuntimeError where it does not come to results."""
    with tempfile.TemporaryDirectory(prefix="rknpu-proof-") as folder:
        (Path(folder) / "boards.toml").write_text(boards, encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", *(str(ROOT / "suites" / name) for name in suites)),
            *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-q"),
            *("--boards", f"{folder}/boards.toml", "--rknpu-report", f"{folder}/report", *arguments),
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment["RKNPU_LEASE_DIR"] = f"{folder}/leases"
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        results = Path(folder) / "report" / "results.jsonl"
        if not results.exists():
            raise RuntimeError(f"{' '.join(arguments)}: no results\n{done.stdout}{done.stderr}")
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "outcome" in line]
