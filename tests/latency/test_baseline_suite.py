"""LAT-08 end to end on emulated boards that take their time, against stored runs made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from compare.make import CORE, processes, run_of, timed, write
from latency.conftest import RunSuites
from latency.test_latency_suites import BOARD, boards, settled, usual_ms

from pytest_rknpu.verdict import Measurement

MODEL = "digits_cnn"
SUITE = "suites/latency/test_baseline.py"
TEST = "test_no_slower_than_the_baseline["
CLOCKS = tuple(
    Measurement(f"clock {name}", f"userspace, {mhz} MHz", "")
    for name, mhz in {"npu": 1000, "ddr": 1056, "cpu policy0": 1608}.items()
)


def baseline(folder: Path) -> Path:
    """What was measured on each board, relative to how long it takes now."""
    random = np.random.default_rng(47)
    usual = usual_ms(MODEL)
    relative = {"faster-before": 0.8, "slower-before": 1.25, "few": 1.0, "silicon": 1.0, "elsewhere": 0.8}
    tests = [
        timed(
            processes(random, usual * factor, runs=20 if board == "few" else 80),
            MODEL,
            CORE,
            board=board,
            evidence="hardware" if board == "silicon" else "emulator",
            measurements=CLOCKS if board != "elsewhere" else (),
        )
        for board, factor in relative.items()
    ]
    return write(folder / "stored", run_of(*tests))


def test_verdicts_against_a_stored_run(run_suites: RunSuites, tmp_path: Path) -> None:
    names = ("faster-before", "slower-before", "few", "silicon", "elsewhere")
    text = "".join(BOARD.format(name=name) + 'latency_model = "steady"\n' for name in names)
    expected = {
        f"{TEST}faster-before-": "fail",
        f"{TEST}slower-before-": "pass",
        f"{TEST}few-": "inconclusive",
        f"{TEST}silicon-": "skip",
        f"{TEST}elsewhere-": "inconclusive",  # nobody wrote down how its clocks ran
    }
    stored = str(baseline(tmp_path))
    run = settled(run_suites, expected, text, SUITE, "-k", MODEL, "--rknpu-baseline", stored)
    message = run.message(f"{TEST}faster-before-")
    assert "p50: " in message
    assert "digits_cnn on RKNN_NPU_CORE_0 (B) against the baseline (A)" in message
    assert "has 100 runs of digits_cnn on RKNN_NPU_CORE_0; 368 are needed" in run.message(f"{TEST}few-")
    assert "clock npu: not recorded in A, userspace, 1000 MHz in B" in run.message(f"{TEST}elsewhere-")
    assert "it has none of that board" in run.message(f"{TEST}silicon-")
    passed = run.results[f"{TEST}slower-before-{MODEL}-one-core]"]
    assert passed["requirement"] == ["LAT-08"]
    assert sum(map(len, passed["samples"][0]["processes"])) == 368
    changes = {m["name"]: m["value"] for m in passed["measurements"] if m["name"].endswith(" change")}
    assert set(changes) == {"p50 change", "p95 change", "p99 change"}
    assert -25 < changes["p50 change"] < -15


def test_without_a_baseline(run_suites: RunSuites) -> None:
    run = run_suites(boards("steady"), SUITE, "-k", MODEL)
    assert run.outcome(f"{TEST}steady-") == "skip"
    assert "no baseline: give --rknpu-baseline RUN" in run.message(f"{TEST}steady-")


def test_a_baseline_of_the_ini_file(run_suites: RunSuites, tmp_path: Path) -> None:
    baseline(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nrknpu_baseline = stored\n")
    run = run_suites(boards("steady"), SUITE, "-k", MODEL, "-c", "pytest.ini")
    assert "has no runs of digits_cnn on RKNN_NPU_CORE_0 of steady" in run.message(f"{TEST}steady-")


def test_a_baseline_that_cannot_be_read(run_suites: RunSuites, tmp_path: Path) -> None:
    (tmp_path / "torn.jsonl").write_text("{")
    for path, words in {
        "missing": "missing: No such file",
        "torn.jsonl": "has no complete line",
        "": "--rknpu-baseline: is empty",
    }.items():
        run = run_suites(boards("steady"), SUITE, "--rknpu-baseline", path)
        assert words in run.output
        assert run.results == {}
        assert run.code != 0
