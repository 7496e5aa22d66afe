"""Clean boards turn nothing red, whatever the seed."""

from __future__ import annotations

from tests.faults.conftest import RunSuites

RUNS = 200
SOCS = ("rk3588", "rk3576", "rv1106", "rk3566")

BOARDS = "\n".join(
    f'[[board]]\nname = "clean-{seed:03}"\nsoc = "{SOCS[seed % len(SOCS)]}"\nruntime = "emulator"\nseed = '
    f"{seed}\n"
    for seed in range(RUNS)
)


def test_200_clean_runs_raise_no_alarm(run_suites: RunSuites) -> None:
    """Each board is one seed of cache evictions, and draws its own patterns.

    Left out is what starts a process per case (SYNC-12, SYNC-13, ERR, processes of MEM-11): it meets no
    random cache state that the others do not, and would take most of the time.
    """
    run = run_suites(
        BOARDS,
        *(
            "--rknpu-effort",
            "quick",
            "-n",
            "2",
            "-k",
            "not bad_arguments and not processes and not context_argument",
        ),
        suites=("sync", "memory", "versions"),
    )
    assert run.exit_code == 0, run.text[-5000:]
    boards = {record["board"] for record in run.with_outcome("pass")}
    assert len(boards) == RUNS
    assert {record["outcome"] for record in run.records} == {"pass", "skip"}
