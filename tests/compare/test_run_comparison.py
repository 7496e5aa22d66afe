"""Two runs against each other: outcomes, figures, versions, latency, and what may not be compared."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from compare.make import processes, run_of, timed
from report.samples import result

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.report.compared_latency import clocks_moved
from pytest_rknpu.report.comparison import RunComparison, compare_runs
from pytest_rknpu.report.comparison_text import comparison_json, comparison_text
from pytest_rknpu.verdict import Measurement, Outcome, Samples


def random() -> np.random.Generator:
    return np.random.default_rng(41)


def compared(before: Any, after: Any) -> RunComparison:
    return compare_runs(run_of(before), run_of(after, run_id="later"))


@pytest.mark.parametrize(
    ("before", "after", "turn", "regressed"),
    [
        (Outcome.PASS, Outcome.FAIL, "began to fail", True),
        (Outcome.SKIP, Outcome.FAIL, "began to fail", True),
        (Outcome.WAIVED, Outcome.FAIL, "began to fail", True),
        (Outcome.INCONCLUSIVE, Outcome.FAIL, "began to fail", True),
        (Outcome.PASS, Outcome.INCONCLUSIVE, "no longer shown", True),
        (Outcome.PASS, Outcome.INFRA, "no longer shown", True),
        (Outcome.PASS, Outcome.HARNESS, "no longer shown", True),
        (Outcome.FAIL, Outcome.PASS, "ceased to fail", False),
        (Outcome.FAIL, Outcome.WAIVED, "ceased to fail", False),
        (Outcome.FAIL, Outcome.INFRA, "other", False),
        (Outcome.PASS, Outcome.SKIP, "now skipped", False),
        (Outcome.PASS, Outcome.WAIVED, "other", False),
        (Outcome.FAIL, Outcome.SKIP, "other", False),
        (Outcome.INFRA, Outcome.PASS, "other", False),
    ],
)
def test_turns(before: Outcome, after: Outcome, turn: str, regressed: bool) -> None:
    found = compared(result(outcome=before), result(outcome=after))
    (change,) = found.outcomes
    assert (change.before, change.after.outcome, change.turn) == (before, after, turn)
    assert found.regressed is regressed
    text = comparison_text(found)
    assert f"SYNC-01 rk-one (hardware) sync/test_a.py::test_x[rk-one-64]: {before} -> {after}" in text
    assert text.splitlines()[-1].startswith("REGRESSION: " if regressed else "no regression shown")


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_same_outcome_is_no_change(outcome: Outcome) -> None:
    found = compared(result(outcome=outcome), result(outcome=outcome))
    assert found.outcomes == ()
    assert not found.regressed


def test_a_slower_model_is_a_regression_and_a_faster_one_is_none() -> None:
    draw = random()
    before = [timed(processes(draw, 2.0), name) for name in ("one", "two", "three")]
    after = [
        timed(processes(draw, median), name) for name, median in (("one", 2.0), ("two", 2.2), ("three", 1.8))
    ]
    found = compare_runs(run_of(*before), run_of(*after))
    directions = {(one.runs.model, one.change.quantile): one.direction for one in found.latency}
    assert {directions["one", quantile] for quantile in (0.5, 0.95, 0.99)} == {"unchanged"}
    assert {directions["two", quantile] for quantile in (0.5, 0.95)} == {"slower"}
    assert {directions["three", quantile] for quantile in (0.5, 0.95)} == {"faster"}
    assert found.regressed
    assert found.latency[0].runs.core_mask == "RKNN_NPU_CORE_0"
    text = comparison_text(found)
    assert "SLOWER: rk-one (hardware) two on RKNN_NPU_CORE_0 p50: " in text
    assert "by Holm" in text
    assert not compare_runs(run_of(before[0], before[2]), run_of(after[0], after[2])).regressed


def test_latency_is_corrected_for_the_number_of_comparisons() -> None:
    draw = random()
    pairs = [(timed(processes(draw), f"m{n}"), timed(processes(draw, 2.03), f"m{n}")) for n in range(4)]
    alone = compare_runs(run_of(pairs[0][0]), run_of(pairs[0][1])).latency[0]
    many = compare_runs(run_of(*(a for a, _ in pairs)), run_of(*(b for _, b in pairs))).latency[0]
    assert many.change == alone.change
    assert many.corrected > alone.corrected >= alone.change.p_value


def test_a_mask_of_its_own() -> None:
    """The same model on other cores is something else; a SoC without masks has its only core."""
    draw = random()
    before = timed(processes(draw), mask="RKNN_NPU_CORE_0", nodeid="t")
    after = timed(processes(draw), mask="none", nodeid="t")
    found = compared(before, after)
    assert (found.latency, found.not_compared) == ((), ())
    assert compared(after, after).latency[0].runs.what == "digits_cnn on its only core"


def test_unfit_samples_are_named_and_not_judged() -> None:
    draw = random()
    drifting = [2 * one * np.linspace(1.0, 1.2, one.size) for one in processes(draw)]
    found = compared(timed(processes(draw)), timed(drifting))
    (one,) = found.not_compared
    assert any(reason.startswith("B: drift") for reason in one.reasons)
    assert (found.latency, found.regressed) == ((), False)
    assert comparison_text(found).splitlines()[-1] == "no regression shown; 1 timed and not compared"


def test_other_clocks_forbid_a_comparison() -> None:
    draw = random()
    sides = [
        timed(processes(draw), measurements=(Measurement("clock npu", f"userspace, {mhz} MHz", ""),))
        for mhz in (1000, 800)
    ]
    (one,) = compared(*sides).not_compared
    assert one.reasons == ("clock npu: userspace, 1000 MHz in A, userspace, 800 MHz in B",)


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        ("userspace, 1000 MHz", "performance, 1000 MHz", 0),  # both leave it alone
        ("userspace, 1000 MHz", "rknpu_ondemand, 1000 MHz", 1),
        ("rknpu_ondemand, 1000 MHz", "rknpu_ondemand, 1000 MHz", 0),  # allowed, or else disturbed
        ("unknown", "unknown", 0),
        ("userspace, 1000 MHz", None, 1),  # nobody knows how it ran
        (None, "userspace, 1000 MHz", 1),
        (None, None, 0),
    ],
)
def test_clocks_that_ran_alike(before: str | None, after: str | None, reasons: int) -> None:
    sides = [[] if value is None else [Measurement("clock npu", value, "")] for value in (before, after)]
    assert len(clocks_moved(*sides)) == reasons


def test_what_was_disturbed_is_not_compared() -> None:
    """Also where the samples hold still: a board that was slow throughout looks like a slower version."""
    draw = random()
    calm = timed(processes(draw), measurements=(Measurement("disturbed by", "nothing", ""),))
    hot = timed(processes(draw, 2.2), measurements=(Measurement("disturbed by", "throttled: npu", ""),))
    assert compared(calm, calm).not_compared == ()
    for sides, words in (((calm, hot), "B: disturbed by throttled: npu"), ((hot, calm), "A: disturbed by")):
        found = compared(*sides)
        (one,) = found.not_compared
        assert one.reasons[0].startswith(words)
        assert not found.regressed
        assert found.open_ends == ["1 timed and not compared"]


def test_another_board_of_a_pool_is_another_board() -> None:
    draw = random()
    (one,) = compared(timed(processes(draw), ran_on="a"), timed(processes(draw), ran_on="b")).not_compared
    assert one.reasons == ("another board of those that share the name: a in A, b in B",)


@pytest.mark.parametrize(
    "samples", [((),), ((0, 5),), (("x",),), (), ((1.0, float("inf")),), ((10**400, 5),), ((-5, 5),)]
)
def test_samples_that_are_none(samples: Any) -> None:
    good = timed(processes(random()))
    bad = timed(processes(random()), samples=(Samples("run", "ns", samples),))
    with pytest.raises(ConfigurationError, match="samples are not positive numbers"):
        compared(good, bad)


def with_figures(*figures: tuple[str, Any, str], id: str = "ACC-01") -> Any:
    return result(requirement=(id,), measurements=tuple(Measurement(*figure) for figure in figures))


def test_figures_that_differ_are_listed() -> None:
    before = with_figures(("max_error", 0.5, ""), ("differ", 1, ""), ("kind", "1", ""), ("sure", False, ""))
    after = with_figures(("max_error", 0.7, ""), ("differ", 1, ""), ("kind", "2", ""), ("sure", True, ""))
    found = compared(before, after)
    assert [(one.name, one.before, one.after, one.worse) for one in found.figures] == [
        ("max_error", 0.5, 0.7, None)
    ]
    assert not found.regressed
    assert "max_error 0.5 -> 0.7" in comparison_text(found)
    assert compared(before, before).figures == ()
    elsewhere = [with_figures(("top-1", value, ""), id="SYNC-01") for value in (0.9, 0.5)]
    assert compared(*elsewhere).figures == ()


@pytest.mark.parametrize(
    ("figures", "worse"),
    [
        ((("internal memory", 2**20, "B"), ("internal memory", 2**20 + 2**15, "B")), "memory grew"),
        ((("top-1", 0.98, ""), ("top-1", 0.96, "")), "accuracy dropped"),
    ],
)
def test_memory_and_accuracy_that_got_worse_are_regressions(figures: Any, worse: str) -> None:
    """And the other way round they are none; equal ones, however many, never are."""
    before, after = (with_figures(figure, id="MEM-01") for figure in figures)
    found = compared(before, after)
    (one,) = found.figures
    assert (one.worse, found.regressed) == (worse, True)
    lines = comparison_text(found).splitlines()
    assert any(line.strip().startswith(f"{worse}: MEM-01 rk-one (hardware)") for line in lines)
    assert lines[-1].endswith(
        "1 larger, 0 less accurate" if "memory" in worse else "0 larger, 1 less accurate"
    )
    back = compared(after, before)
    assert ([one.worse for one in back.figures], back.regressed) == ([None], False)
    many = [with_figures(figures[0], id="MEM-01")] * 500
    assert not compare_runs(run_of(*many), run_of(*many)).regressed


def test_what_agreed_in_every_bit_and_no_longer_does() -> None:
    """A record keeps infinity as a word."""
    found = compared(*(with_figures(("output 0 sqnr", value, "dB")) for value in ("inf", 35.0)))
    assert [one.worse for one in found.figures] == ["accuracy dropped"]
    assert json.loads(comparison_json(found))["figures"][0]["before"] == "inf"
    for value in (10**400, "nan", "many"):
        assert compared(*(with_figures(("output 0 sqnr", one, "dB")) for one in (40.0, value))).figures == ()


def test_versions_that_differ() -> None:
    before = result(versions={"runtime": "2.3.2", "driver": "0.9.8", "bsp": "x"})
    after = result(versions={"runtime": "2.5.0", "driver": "0.9.8", "toolkit": "2.5.0"})
    found = compared(before, after)
    assert [(one.name, one.before, one.after) for one in found.versions] == [
        ("bsp", "x", "not recorded"),
        ("runtime", "2.3.2", "2.5.0"),
        ("toolkit", "not recorded", "2.5.0"),
    ]


def test_other_boards_socs_and_evidence_are_no_counterparts() -> None:
    for change in ({"board": "rk-two"}, {"soc": "rk3576"}, {"evidence": "emulator"}):
        with pytest.raises(ConfigurationError, match="nothing to compare: rk-one") as caught:
            compared(result(), result(**change))
        assert next(iter(change.values())) in str(caught.value)


@pytest.mark.parametrize("empty", ["A", "B"])
def test_a_run_without_tests(empty: str) -> None:
    runs = {"A": run_of(result()), "B": run_of(result()), empty: run_of()}
    with pytest.raises(ConfigurationError, match="no board"):
        compare_runs(runs["A"], runs["B"])


def test_what_only_one_has() -> None:
    extra = result(nodeid="suites/x.py::extra", outcome=Outcome.FAIL)
    found = compare_runs(run_of(result()), run_of(result(), extra))
    assert "only in B: 1 tests (rk-one), 1 of them fail; not compared" in found.notes
    assert not found.regressed
    assert found.open_ends == []


def test_what_passed_and_was_not_run_again_is_an_open_end() -> None:
    """A board that is missing in B: nothing is known of it."""
    gone = [result(board="rk-two", nodeid="x"), result(board="rk-two", nodeid="y", outcome=Outcome.FAIL)]
    found = compare_runs(run_of(result(), *gone), run_of(result()))
    assert "only in A: 2 tests (rk-two), 1 of them fail; not compared" in found.notes
    assert found.open_ends == ["1 passed in A and not in B"]
    assert comparison_text(found).splitlines()[-1] == "no regression shown; 1 passed in A and not in B"


def test_notes_on_the_runs() -> None:
    loose = result(requirement=("LAT-05",), outcome=Outcome.INCONCLUSIVE, nodeid="suites/l.py::stable")
    a, b = run_of(result(), loose), run_of(result(), loose, torn=True, seed=9, effort="quick", run_id="b")
    notes = "\n".join(compare_runs(a, b).notes)
    for words in (
        "B is cut off",
        "seeds differ (7, 9)",
        "effort differs (normal, quick)",
        "A: board rk-one was",
    ):
        assert words in notes
    assert "same run" not in notes
    assert "A and B are the same run" in compare_runs(a, a).notes


def test_a_clone_and_a_wheel_have_the_same_tests() -> None:
    path = "sync/test_a.py::test_x[rk-one-64]"
    clone = result(nodeid=f"../../clone/suites/{path}")
    wheel = result(nodeid=f".venv/lib/python3.11/site-packages/pytest_rknpu/_suites/{path}")
    assert compared(clone, wheel).tests == 1


def test_a_repeated_test_has_its_worst_outcome_and_its_last_figures() -> None:
    """As the run has it: a first attempt that fails makes it red."""
    again = [result(outcome=Outcome.FAIL), with_figures(("iterations", 7, ""), id="SYNC-01")]
    found = compare_runs(run_of(result()), run_of(*again))
    (change,) = found.outcomes
    assert (change.turn, change.after.message) == ("began to fail", "because of fail")
    assert change.after.measurements[0].value == 7
    assert compare_runs(run_of(*again), run_of(*again)).outcomes == ()
