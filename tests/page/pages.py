"""Results for pages: made up, with everything in them that could hurt a page."""

from __future__ import annotations

from pytest_rknpu.report.results import PlannedBoard, Result, Results, RunRecord
from pytest_rknpu.verdict import REQUIREMENTS, Measurement, Outcome, Samples, WaivedBy

NASTY = "</script><script>document.title = 'hacked'</script> <b>& \u2028 \U0001f600"
MEMORY_MAP = (
    '{"layers":2,"internal":9984,"weights":512,"left_out":0,'
    '"tensors":[["input",0,768,0,1,0],["first.relu",768,8192,1,2,0]]}'
)
HEXDUMP = "2 bytes differ at 64, 65 (cache line 1)\nexpected 00112233\nactual   00ff2233"


def run_record(boards: tuple[PlannedBoard, ...]) -> RunRecord:
    return RunRecord(
        schema="pytest-rknpu/results-1",
        run_id="20261130T000000Z-abcdef",
        plugin="1.0",
        git=None,
        command="pytest suites --boards 'my boards.toml' --rknpu-fault sync-to-device-dropped -n 2",
        seed=7,
        effort="quick",
        started="2026-11-30T00:00:00+00:00",
        host="lab",
        python="3.11",
        pytest="8.4",
        boards=boards,
    )


def result(
    requirement: str, board: str, outcome: Outcome, *, message: str = "", number: int = 0, **more: object
) -> Result:
    keys: dict[str, object] = {
        "requirement": (requirement,),
        "nodeid": f"suites/test_it.py::test_{requirement.lower().replace('-', '_')}[{board}-{number}]",
        "board": board,
        "soc": "rk3588",
        "evidence": "hardware",
        "outcome": outcome,
        "versions": {"runtime": "2.3.2" if board == "alpha" else "2.3.0", "driver": "0.9.8"},
        "seed": 1,
        "measurements": (),
        "notes": (),
        "message": message or ("" if outcome is Outcome.PASS else f"{outcome} it is"),
        "duration_s": 0.25,
    }
    return Result(**{**keys, **more})  # type: ignore[arg-type]


def small() -> Results:
    """Two boards, every outcome, latency samples, accuracy figures."""
    boards = (PlannedBoard("alpha", "rk3588", "hardware"), PlannedBoard("beta", "rk3588", "emulator"))
    waiver = WaivedBy(1, "fail", "lost", "known until 0.9.9", "https://tracker.example/1", "2027-01-31")
    outcomes = dict(
        zip(("SYNC-01", "SYNC-02", "MEM-01", "MEM-02", "ERR-01", "VER-01"), Outcome, strict=False)
    )
    tests = [result(id, "alpha", outcome) for id, outcome in outcomes.items()]
    tests += [
        result("SYNC-01", "beta", Outcome.FAIL, message=HEXDUMP, evidence="emulator"),
        result("SYNC-02", "beta", Outcome.FAIL, message=NASTY, evidence="emulator", notes=(NASTY,)),
        result("SYNC-07", "beta", Outcome.WAIVED, evidence="emulator", waived_by=waiver),
        result(
            "ACC-01",
            "alpha",
            Outcome.PASS,
            measurements=(
                Measurement("output 0 cosine", 0.99912345, ""),
                Measurement("output 0 sqnr", 27.1, "dB"),
                Measurement("top-1", 0.9975, ""),
            ),
        ),
        result(
            "SPARSE-01", "alpha", Outcome.PASS, measurements=(Measurement("SparseRatio of stem", "75%", ""),)
        ),
        result("MEM-12", "alpha", Outcome.PASS, measurements=(Measurement("memory map", MEMORY_MAP, ""),)),
        result("SYNC-14", "alpha", Outcome.PASS, measurements=(Measurement("stale lines", 62, "lines"),)),
        result(
            "LAT-01",
            "alpha",
            Outcome.PASS,
            measurements=(
                Measurement("model", "digits_cnn", ""),
                Measurement("core mask", "none", ""),
                Measurement("budget p50", 2.5, "ms"),
            ),
            samples=(
                Samples("run", "ns", ((2_000_000, 2_100_000, 2_200_000), (2_050_000, 2_150_000, 2_400_000))),
            ),
        ),
    ]
    return Results(run_record(boards), tuple(tests), torn=False)


def large(boards: int = 100, requirements: int = 60) -> Results:
    """As many cells as a large farm has, two tests in each."""
    names = [f"board-{number:03}" for number in range(boards)]
    planned = tuple(PlannedBoard(name, "rk3588", "hardware") for name in names)
    ids = list(REQUIREMENTS)[:requirements]
    tests = tuple(
        result(id, name, Outcome.FAIL if place == 0 and id == ids[0] else Outcome.PASS, number=number)
        for place, name in enumerate(names)
        for id in ids
        for number in range(2)
    )
    return Results(run_record(planned), tests, torn=True)
