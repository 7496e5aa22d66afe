"""The suites on a broken emulated board: which test functions end red, by requirement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from pytest_rknpu.verdict.judgement import LOG_REQUIREMENT
from tests.proof.catalogue import LATENCY, Seeded
from tests.proof.doctored import Kills

ROOT = Path(__file__).resolve().parents[2]
# The board on which the most requirements apply.
_BOARD = '[[board]]\nname = "faulty"\nsoc = "rk3588"\nruntime = "emulator"\n'
_SUITES = ("sync", "memory", "errors", "versions", "accuracy/test_masks_agree.py")
_SEED = "1"
_RED = ("fail", "inconclusive", "infra", "harness")
# A budget that the steady latency model keeps, and what is slow does not.
_BUDGET = (
    '[[budget]]\nmodel = "digits_cnn"\nboard = "faulty"\np50_ms = 20.0\ninit_ms = 100.0\n'
    "first_inference_ms = 100.0\nsamples = 200\n"
)
_BASELINE = "LAT-08"
"""Is about another run, on the sound board."""


def kills_of(seeded: Seeded, *, only_named: bool) -> Kills:
    """Run the suites with the fault; ``only_named``: the tests of its own requirements alone.

    Raises RuntimeError where the run does not come to results.
    """
    arguments = ["--rknpu-effort", seeded.effort, "--rknpu-seed", _SEED]
    if seeded.layer == LATENCY:
        return _red(_played(seeded, arguments + _requirements(seeded.requirements)))
    arguments += ["--rknpu-fault", seeded.name]
    if only_named:
        arguments += _requirements(seeded.requirements)
    return _red(run_boards(_SUITES, arguments, _BOARD))


def _played(seeded: Seeded, arguments: Sequence[str]) -> list[dict[str, object]]:
    """The records of a run at another pace; behind one at a sound pace, where a requirement compares them."""
    suites, boards = ("latency", "sync"), _BOARD + _BUDGET
    model = ("--rknpu-latency-model", seeded.name)
    if _BASELINE not in seeded.requirements:
        return run_boards(suites, [*arguments, *model], boards)
    with tempfile.TemporaryDirectory(prefix="rknpu-baseline-") as folder:
        steady = ("--rknpu-latency-model", "steady", "--rknpu-effort", "normal", "--rknpu-report", folder)
        run_boards(("latency",), [*steady, "--requirement", "LAT-01"], _BOARD)
        return run_boards(suites, [*arguments, *model, "--rknpu-baseline", folder], boards)


def _requirements(ids: Iterable[str]) -> list[str]:
    return [word for id in ids for word in ("--requirement", id)]


def _red(records: Iterable[dict[str, object]]) -> Kills:
    kills: Kills = {}
    for record in records:
        if record["outcome"] not in _RED:
            continue
        function = str(record["nodeid"]).rpartition("::")[2].partition("[")[0]
        # An error in the log adds VER-05 behind the ids of whatever test ran: it is no test of that.
        ids: list[str] = record["requirement"]  # type: ignore[assignment]
        for id in [*ids[:1], *(id for id in ids[1:] if id != LOG_REQUIREMENT)]:
            seen = kills.setdefault(id, {})
            # Of one test's items the worst counts.
            seen[function] = min(seen.get(function, _RED[-1]), str(record["outcome"]), key=_RED.index)
    return {id: dict(sorted(kills[id].items())) for id in sorted(kills)}


def _last(arguments: Sequence[str], option: str) -> str | None:
    """The value of an option that was given in two words."""
    values = [value for word, value in pairwise(arguments) if word == option]
    return values[-1] if values else None


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
        results = Path(_last(arguments, "--rknpu-report") or f"{folder}/report") / "results.jsonl"
        if not results.exists():
            raise RuntimeError(f"{' '.join(arguments)}: no results\n{done.stdout}{done.stderr}")
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "outcome" in line]
