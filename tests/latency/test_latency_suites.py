"""The latency suites end to end on emulated boards that take their time: pass, fail and inconclusive.

These boards wait on the clock of this host. Whatever else runs on it may disturb them, and samples that were
disturbed are inconclusive, as they have to be. Such a run is repeated, as one would on a board.
"""

from __future__ import annotations

import json

import pytest
from latency.conftest import RunSuites, SuiteRun

from pytest_rknpu import models
from pytest_rknpu.emulator import pack
from pytest_rknpu.emulator.container import decode
from pytest_rknpu.emulator.latency import LATENCY_MODELS

BOARD = '[[board]]\nname = "{name}"\nsoc = "rk3588"\nruntime = "emulator"\n'
ATTEMPTS = 4
STEADY = LATENCY_MODELS["steady"]


def boards(*latency_models: str) -> str:
    """One board per latency model, called like it."""
    return "".join(BOARD.format(name=name) + f'latency_model = "{name}"\n' for name in latency_models)


def budget(board: str, **figures: object) -> str:
    keys = {"model": "digits_cnn", "board": board, "samples": 200, **figures}
    return "[[budget]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def usual_ms(name: str) -> float:
    """The median of a run of a model under the steady latency model."""
    layers = len(decode(pack(models.load(name).qdq_onnx, "rk3588")).layers)
    return STEADY.base + STEADY.per_layer * layers


def settled(run_suites: RunSuites, expected: dict[str, str], boards: str, *arguments: str) -> SuiteRun:
    """A run with these outcomes, by how an item's name begins; repeated while one is inconclusive instead."""
    for _ in range(ATTEMPTS):
        run = run_suites(boards, *arguments)
        found = {test: run.outcome(test) for test in expected}
        if found == expected:
            return run
        wrong = [test for test in expected if found[test] not in (expected[test], "inconclusive")]
        assert not wrong, f"{[run.message(test) for test in wrong]}\n{run.output[-3000:]}"
    raise AssertionError(f"disturbed {ATTEMPTS} times: {[run.message(test) for test in expected]}")


def test_budgets_pass_fail_and_stay_open(run_suites: RunSuites) -> None:
    usual = usual_ms("digits_cnn")
    names = {"roomy": 3.0, "tight": 0.9, "close": 1.002}
    text = "".join(BOARD.format(name=name) + 'latency_model = "steady"\n' for name in names)
    text += budget("roomy", p50_ms=3 * usual, p95_ms=4 * usual, first_inference_ms=300.0, init_ms=300.0)
    text += budget("tight", p50_ms=0.9 * usual, p95_ms=4 * usual, first_inference_ms=5.0, init_ms=300.0)
    text += budget("close", p50_ms=1.002 * usual, alpha=1e-6)
    expected = {
        "test_runs_stay_within_their_budget[roomy-": "pass",
        "test_runs_stay_within_their_budget[tight-": "fail",
        "test_runs_stay_within_their_budget[close-": "inconclusive",
        "test_the_start_stays_within_its_budget[roomy-": "pass",
        "test_the_start_stays_within_its_budget[tight-": "fail",
    }
    run = settled(run_suites, expected, text, "suites/latency/test_budgets.py", "-k", "digits_cnn")
    assert "p50 <= " in run.message("test_runs_stay_within_their_budget[tight-")
    assert "digits_cnn: p95 <= " in run.message("test_runs_stay_within_their_budget[tight-")
    assert "first inference: p50 <= 5 ms: fail" in run.message(
        "test_the_start_stays_within_its_budget[tight-"
    )
    assert run.outcome("test_the_start_stays_within_its_budget[close-") == "skip"
    assert "no [[budget]] of boards.toml gives init_ms" in run.message(
        "test_the_start_stays_within_its_budget[close-"
    )
    result = run.results["test_runs_stay_within_their_budget[roomy-digits_cnn-one-core]"]
    check_record(result)
    assert "LATENCY PLAYED: steady" in run.output
    assert run.code == 1


def check_record(result: dict) -> None:
    """Figures, conditions and raw samples are in the result, and what played the time is named."""
    figures = {figure["name"]: figure["value"] for figure in result["measurements"]}
    for name in ("p50", "p95", "p99"):
        assert f"{name} at least" in figures
        assert f"{name} at most" in figures
    assert figures["budget p50"] < figures["budget p95"]
    assert "budget p99" not in figures  # boards.toml has none
    assert (figures["model"], figures["core mask"]) == ("digits_cnn", "RKNN_NPU_CORE_0")
    assert (figures["runs"], figures["processes"]) == (200, 5)
    assert figures["clock npu"] == "userspace, 1000 MHz"
    assert figures["disturbed by"] == "nothing"
    for name in ("temperature npu-thermal (thermal_zone0)", "load", "NPU load"):
        assert {f"{name} before", f"{name} after"} <= set(figures)
    assert figures["throttling by thermal-devfreq-0 (cooling_device0), state"] == 0
    assert 0 < figures["binding per call"] < 100
    (samples,) = result["samples"]
    assert (samples["name"], samples["unit"]) == ("run", "ns")
    assert [len(process) for process in samples["processes"]] == [40] * 5
    assert result["evidence"] == "emulator"
    assert result["versions"]["latency_model"] == "emulated steady"


def test_what_is_not_stable_is_inconclusive_with_the_reason(run_suites: RunSuites) -> None:
    words = {
        "two-modes": "two modes: around",
        "throttle": "throttled: cooling device thermal-devfreq-0 is at 1 of 5",
        "wandering": "clock not fixed: npu: governor rknpu_ondemand",
    }
    run = run_suites(boards(*words), "suites/latency/test_stability.py", "-k", "stable")
    for board, reason in words.items():
        assert run.outcome(f"test_latency_is_stable[{board}]") == "inconclusive", run.output[-3000:]
        assert reason in run.message(f"test_latency_is_stable[{board}]")


@pytest.mark.parametrize(
    ("suite", "test", "broken"),
    [
        ("suites/latency/test_inputs.py", "test_no_input_is_faster_the_second_time", "cached"),
        ("suites/latency/test_core_masks.py", "test_several_cores_are_not_slower_than_one", "slow-cores"),
        ("suites/latency/test_stability.py", "test_perf_run_is_not_longer_than_the_run", "long-perf-run"),
        ("suites/sync/test_cost.py", "test_one_direction_costs_no_more_than_both", "slow-sync"),
    ],
)
def test_a_board_that_breaks_a_requirement_fails_it(
    run_suites: RunSuites, suite: str, test: str, broken: str
) -> None:
    expected = {f"{test}[steady]": "pass", f"{test}[{broken}]": "fail"}
    # Two cores are enough, and fewer core masks take less time.
    text = boards("steady", broken).replace("rk3588", "rk3576")
    settled(run_suites, expected, text, suite, "-k", test)


def test_pinned_clocks_are_fixed_clocks(run_suites: RunSuites) -> None:
    """The board whose clocks wander is stable once they are pinned, or where that is allowed."""
    text = BOARD.format(name="pinned") + 'latency_model = "wandering"\npin = true\n'
    text += BOARD.format(name="allowed") + 'latency_model = "wandering"\nallow_unpinned = true\n'
    expected = {"test_latency_is_stable[pinned]": "pass", "test_latency_is_stable[allowed]": "pass"}
    run = settled(run_suites, expected, text, "suites/latency/test_stability.py", "-k", "stable")
    figures = {
        board: {figure["name"]: figure["value"] for figure in result["measurements"]}
        for result in run.results.values()
        for board in [result["board"]]
    }
    assert figures["pinned"]["clock npu"] == "userspace, 1000 MHz"
    assert figures["allowed"]["clock npu"] == "rknpu_ondemand, 1000 MHz"
    (allowed,) = [result for result in run.results.values() if result["board"] == "allowed"]
    assert any("although a clock may move" in note for note in allowed["notes"])


def test_measured_things_are_measured(run_suites: RunSuites) -> None:
    run = run_suites(boards("steady"), "suites/latency/test_surroundings.py")
    for test, names in {
        "test_latency_under_load": ("idle p50", "under load p50", "under load by idle, medians"),
        "test_latency_with_cold_caches": ("warm p50", "cold p99", "cold by warm, medians"),
    }.items():
        assert run.outcome(f"{test}[steady]") == "pass", run.output[-3000:]
        figures = {figure["name"] for figure in run.results[f"{test}[steady]"]["measurements"]}
        assert set(names) <= figures


def test_software_without_a_latency_model_gets_no_verdict(run_suites: RunSuites) -> None:
    text = BOARD.format(name="emu") + '[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n'
    text += budget("emu", p50_ms=1.0)
    run = run_suites(text, "suites/latency", "suites/sync/test_cost.py", "-m", "requirement")
    timed = [result for result in run.results.values() if "LAT-09" not in result["requirement"]]
    assert {result["board"] for result in timed} == {"emu", "sim"}
    for result in timed:
        assert result["outcome"] == "skip"
        assert "says nothing of silicon: no latency verdict" in result["message"]


def test_the_option_is_for_emulated_boards(run_suites: RunSuites) -> None:
    emulated = run_suites(
        BOARD.format(name="emu"),
        "--rknpu-latency-model",
        "steady",
        "suites/latency/test_stability.py",
        "--co",
    )
    assert "LATENCY PLAYED: steady" in emulated.output
    unknown = run_suites(BOARD.format(name="emu"), "--rknpu-latency-model", "fast", "suites/latency")
    assert "unknown latency model" in unknown.output
    assert unknown.code == 4
    real = '[[board]]\nname = "real"\nsoc = "rk3588"\nhost = "192.0.2.7"\n'
    refused = run_suites(real, "--rknpu-latency-model", "steady", "suites/latency")
    assert "--rknpu-latency-model steady: board real is not emulated" in refused.output
    assert refused.code == 4


def test_memory_budgets_are_judged_in_software_too(run_suites: RunSuites) -> None:
    text = BOARD.format(name="roomy") + BOARD.format(name="tight") + BOARD.format(name="none")
    text += budget("roomy", weight_bytes=10**6, internal_bytes=10**6)
    text += budget("tight", weight_bytes=100, internal_bytes=10**6)
    text += budget("tight", weight_bytes=100, core_mask="0_1")  # said once all the same
    text += budget("none", model="probe_chain", dma_bytes=10**7)  # a model that has an item only for that
    run = run_suites(text, "suites/memory/test_size_budgets.py")
    outcomes = {name.partition("[")[2]: result["outcome"] for name, result in run.results.items()}
    judged = {name: outcome for name, outcome in outcomes.items() if outcome != "skip"}
    assert judged == {
        "roomy-digits_cnn]": "pass",
        "tight-digits_cnn]": "fail",
        "none-probe_chain]": "pass",
    }, run.output[-3000:]
    message = run.message("test_memory_stays_within_its_budget[tight-digits_cnn")
    assert message.count("weight_bytes of digits_cnn is ") == 1
    assert ", its budget 100" in message
    assert "measured, not judged" in run.message("test_memory_stays_within_its_budget[none-digits_cnn")
    result = run.results["test_memory_stays_within_its_budget[roomy-digits_cnn]"]
    sizes = {figure["name"]: figure["value"] for figure in result["measurements"]}
    assert min(sizes["weight_bytes"], sizes["internal_bytes"], sizes["dma_bytes"]) > 0


def test_a_budget_names_further_core_masks_to_time(run_suites: RunSuites) -> None:
    text = BOARD.format(name="emu") + budget("emu", p50_ms=1.0, core_mask="0_1")
    text += budget("emu", p50_ms=1.0, model="probe_chain")
    run = run_suites(text, "suites/latency/test_budgets.py")
    names = {name.partition("[emu-")[2].rstrip("]") for name in run.results}
    assert names == {
        "digits_cnn-one-core",
        "probe_wide-one-core",
        "digits_cnn-RKNN_NPU_CORE_0_1",
        "probe_chain-one-core",
    }


def test_a_core_mask_that_the_runtime_does_not_know_yet(run_suites: RunSuites) -> None:
    """The SoC has it, so that the budget is right; to fail the board for it would not be."""
    text = BOARD.format(name="old") + 'latency_model = "steady"\nruntime_version = "1.6.0"\n'
    run = run_suites(
        text + budget("old", p50_ms=1.0, core_mask="ALL"), "suites/latency/test_budgets.py", "-k", "ALL"
    )
    assert {result["outcome"] for result in run.results.values()} == {"skip"}, run.output[-3000:]
    message = run.message("test_runs_stay_within_their_budget[old-")
    assert message == "old: the runtime 1.6.0 does not know RKNN_NPU_CORE_ALL"


def test_implausible_units_are_warned_of_at_the_start(run_suites: RunSuites) -> None:
    run = run_suites(BOARD.format(name="emu") + budget("emu", p50_ms=0.002), "suites/latency", "--co")
    assert "WARNING" in run.output
    assert "p50_ms = 0.002 looks like seconds" in run.output
