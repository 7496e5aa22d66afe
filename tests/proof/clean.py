"""Clean boards, each with a seed of its own: whatever turns red on one is a false alarm."""

from __future__ import annotations

from pytest_rknpu.measure import fault_rate_bound
from tests.proof.emulated import run_boards

SOCS = ("rk3588", "rk3576", "rv1106", "rk3566")
CONFIDENCE = 0.95
# Left out is what starts a process per case (SYNC-12, SYNC-13, ERR, processes of MEM-11): it meets no random
# cache state that the others do not, and would take most of the time. And what only repeats itself.
LEFT_OUT = "not bad_arguments and not processes and not context_argument and not refused"
SUITES = ("sync", "memory", "versions")


def clean_boards(first: int, count: int) -> str:
    """boards.toml with ``count`` boards whose seeds begin at ``first``."""
    return "\n".join(
        f'[[board]]\nname = "clean-{seed:04}"\nsoc = "{SOCS[seed % len(SOCS)]}"\nruntime = "emulator"\n'
        f"seed = {seed}\n"
        for seed in range(first, first + count)
    )


def count_alarms(first: int, count: int, workers: int = 2) -> tuple[int, list[str]]:
    """(boards that ran clean, what turned red)."""
    options = ["--rknpu-effort", "quick", "-n", str(workers), "-k", LEFT_OUT]
    records = run_boards(SUITES, options, clean_boards(first, count))
    red = [f"{r['nodeid']}: {r['message']}" for r in records if r["outcome"] not in ("pass", "skip")]
    passed = {str(record["board"]) for record in records if record["outcome"] == "pass"}
    return len(passed), red


def bound_of(runs: int) -> float:
    """The rate of false alarms per run that ``runs`` clean ones exclude at `CONFIDENCE`."""
    return fault_rate_bound(runs, CONFIDENCE)
