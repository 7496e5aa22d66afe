"""`rknpu compare` and `rknpu suggest-budgets` on files."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from compare.make import CORE, processes, run_of, timed, write
from report.samples import RUN, result

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.report.comparison import compare_runs
from pytest_rknpu.report.comparison_text import comparison_json, comparison_text
from pytest_rknpu.report.suggestion import rounded_up
from pytest_rknpu.report.timed import read_run
from pytest_rknpu.verdict import Measurement, Outcome, Samples

BOARDS = '[[board]]\nname = "rk-one"\nsoc = "rk3588"\nhost = "192.0.2.7"\n'


def _regression(began: int = 0, slower: int = 0) -> str:
    return f"REGRESSION: {began} began to fail, 0 no longer shown, {slower} slower, 0 larger, 0 less accurate"


def draw() -> np.random.Generator:
    return np.random.default_rng(43)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Report folders: ``good``, ``slow``, ``broken`` (a test fails), ``other`` (another board)."""
    random = draw()
    samples = processes(random)
    write(tmp_path / "good", run_of(timed(samples), result()))
    write(tmp_path / "slow", run_of(timed([1.1 * one for one in samples]), result(), run_id="slow"))
    write(tmp_path / "broken", run_of(timed(processes(random)), result(outcome=Outcome.FAIL)))
    write(tmp_path / "other", run_of(result(board="rk-two")))
    return tmp_path


@pytest.mark.parametrize(
    ("a", "b", "code", "last"),
    [
        ("good", "good", 0, "no regression shown"),
        ("good", "slow", 1, _regression(slower=3)),
        ("slow", "good", 0, "no regression shown"),
        ("good", "broken", 1, _regression(began=1)),
        ("broken", "good/results.jsonl", 0, "no regression shown"),
    ],
)
def test_exit_codes(rknpu, runs: Path, a: str, b: str, code: int, last: str) -> None:
    answer = rknpu("compare", a, b)
    assert (answer.code, answer.err) == (code, "")
    assert answer.out.splitlines()[-1] == last
    as_json = rknpu("compare", a, b, "--json")
    assert as_json.code == code
    assert json.loads(as_json.out)["regression"] is bool(code)


def test_json_says_the_same(rknpu, runs: Path) -> None:
    table = json.loads(rknpu("compare", "good", "slow", "--json").out)
    p50 = table["latency"][0]
    assert (p50["model"], p50["core_mask"], p50["quantile"]) == ("digits_cnn", CORE, "p50")
    assert (p50["board"], p50["evidence"], p50["direction"]) == ("rk-one", "hardware", "slower")
    assert p50["change"] == pytest.approx(0.1, abs=1e-6)
    assert p50["change_at_least"] < 0.1 < p50["change_at_most"]
    assert (table["correction"], table["alpha"], table["noise_floor"]) == ("holm", 0.05, 0.01)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "good"], "RUN_B"),
        (["compare", "good", "missing"], "missing: No such file"),
        (["compare", "good", "other"], "no test in common"),
        (["compare", "good", "."], "results.jsonl: No such file"),
        (["compare", "good", "empty"], "has no complete line"),
        (["compare", "notes.txt", "good"], "notes.txt, line 1: not a record of a run"),
        (["suggest-budgets", "other"], "no model was timed in this run; run the latency suite"),
        (["suggest-budgets", "good", "--margin", "-1"], "give it in per cent, from 0 to 1000"),
        (["suggest-budgets", "good", "--margin", "nan"], "give it in per cent"),
        (["suggest-budgets", "good", "--margin", "ten"], "'--margin'"),
        (["suggest-budgets", "good", "--evidence", "emulator"], "only with hardware"),
    ],
)
def test_mistakes_are_one_line(rknpu, runs: Path, arguments: list[str], words: str) -> None:
    (runs / "empty").write_text("")
    (runs / "notes.txt").write_text("a note\n")
    answer = rknpu(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err
    assert answer.err.count("\n") == 1


def test_a_torn_file_is_compared_as_far_as_it_goes(rknpu, runs: Path) -> None:
    file = runs / "broken" / "results.jsonl"
    text = file.read_bytes()
    file.write_bytes(text[:-40])  # within the failing test, the last
    answer = rknpu("compare", "good", "broken")
    assert answer.code == 3  # what is missing is nothing to be glad of
    assert "NOTE B is cut off in its last line" in answer.out
    assert "only in A: 1 tests" in answer.out
    assert answer.out.splitlines()[-1] == "no regression shown; B is cut off; 1 passed in A and not in B"
    assert rknpu("compare", "broken", "good").code == 0


def test_a_strict_comparison_has_no_open_ends(rknpu, runs: Path) -> None:
    write(runs / "fewer", run_of(result()))
    assert rknpu("compare", "good", "fewer").code == 0
    answer = rknpu("compare", "good", "fewer", "--strict")
    assert (answer.code, answer.err) == (3, "")
    assert answer.out.splitlines()[-1] == "no regression shown; 1 passed in A and not in B"
    assert rknpu("compare", "good", "good", "--strict").code == 0
    assert rknpu("compare", "good", "slow", "--strict").code == 1


ODD = (None, True, 3, -1, 10**400, "x", [], {}, [None], [[3]], {"name": 3}, [{"name": "a"}], float("nan"))


@pytest.mark.parametrize("key", [*result().plain(), "samples.processes", "measurements.value"])
def test_what_somebody_else_wrote_is_refused_or_compared(tmp_path: Path, key: str) -> None:
    """A file with any value anywhere: one line that names it, or a comparison; nothing else."""
    good = timed([one[:3] for one in processes(draw())])
    outer, _, inner = key.partition(".")
    for value in ODD:
        table = json.loads(json.dumps(good.plain()))
        if inner:
            table[outer][0][inner] = value
        else:
            table[outer] = value
        file = tmp_path / "odd.jsonl"
        file.write_text(f"{json.dumps(asdict(RUN))}\n{json.dumps(table)}\n")
        with suppress(ConfigurationError):
            read = read_run(file)
            comparison_text(compare_runs(read, read))
            json.loads(comparison_json(compare_runs(run_of(good), read)))


def test_two_runs_in_one_file_are_refused(rknpu, runs: Path) -> None:
    texts = [(runs / name / "results.jsonl").read_text() for name in ("good", "slow")]
    (runs / "both.jsonl").write_text("".join(texts))
    answer = rknpu("compare", "good", "both.jsonl")
    assert answer.code == 2
    assert "both.jsonl, line 4: not a record of a run" in answer.err


def suggested(rknpu, tmp_path: Path, *arguments: str):
    """The budgets of boards.toml after the lines were appended to it."""
    answer = rknpu("suggest-budgets", *arguments)
    assert (answer.code, answer.err) == (0, "")
    (tmp_path / "boards.toml").write_text(BOARDS + answer.out)
    file = load_boards(tmp_path / "boards.toml")
    assert file.warnings == ()
    return answer.out, file.budgets


def test_suggested_budgets_are_a_part_of_boards_toml(rknpu, tmp_path: Path) -> None:
    random = draw()
    samples = processes(random, 2.0)
    start = timed(
        [],
        requirement=("LAT-02",),
        nodeid="start",
        samples=(
            Samples("rknn_init", "ns", tuple((50_000_000 + n,) for n in range(10))),
            Samples("first inference", "ns", tuple((9_000_000 + n,) for n in range(10))),
        ),
    )
    other = timed(processes(random, 3.0), mask="RKNN_NPU_CORE_0_1", nodeid="x")
    short = timed([one[:40] for one in processes(random, 1.0)], nodeid="short")
    write(tmp_path / "run", run_of(timed(samples), short, start, other))
    text, (one, two) = suggested(rknpu, tmp_path, "run", "--margin", "20")
    ordered = np.sort(np.concatenate(samples))
    assert (one.model, one.board, one.core_mask) == ("digits_cnn", "rk-one", CORE)
    assert 1.2 * ordered[500] < one.p50_ms < 1.2 * ordered[550] + 0.01
    assert 1.2 * ordered[990] < one.p99_ms <= 1.2 * ordered[-1] + 0.01
    assert one.p50_ms < one.p95_ms < one.p99_ms
    assert (one.init_ms, one.first_inference_ms) == (60.1, 10.9)
    assert two.core_mask == "RKNN_NPU_CORE_0_1"
    assert two.init_ms is None
    assert "plus a margin of 20 %" in text
    assert "# Evidence: hardware.\n" in text


def test_other_evidence_only_when_named(rknpu, tmp_path: Path) -> None:
    write(tmp_path / "run", run_of(timed(processes(draw()), evidence="emulator")))
    refused = rknpu("suggest-budgets", "run")
    assert (refused.code, refused.out) == (2, "")
    assert "only with emulator, which is not silicon's time; --evidence emulator" in refused.err
    text, budgets = suggested(rknpu, tmp_path, "run", "--evidence", "emulator")
    assert "# Evidence: emulator. These are not the times of silicon." in text
    assert len(budgets) == 1


def test_unstable_samples_make_no_budget(rknpu, tmp_path: Path) -> None:
    drifting = [one * np.linspace(1.0, 1.2, one.size) for one in processes(draw())]
    few = timed([one[:1] for one in processes(draw(), count=3)], "probe_wide")
    write(tmp_path / "run", run_of(timed(drifting), few))
    text, budgets = suggested(rknpu, tmp_path, "run")
    assert budgets == ()
    (refused,) = [
        line for line in text.splitlines() if line.startswith("# no times for digits_cnn on rk-one")
    ]
    assert "drift" in refused
    assert "# no times for probe_wide on rk-one: 3 runs bound no quantile" in text


def sized(model: str, weight: int, internal: int, dma: int):
    figures = (("model", model, ""), ("weight_bytes", weight, "B"), ("internal_bytes", internal, "B"))
    return result(
        requirement=("MEM-01",),
        nodeid=f"sizes {model}",
        measurements=tuple(Measurement(*one) for one in (*figures, ("dma_bytes", dma, "B"))),
    )


def test_sizes_become_budgets_too(rknpu, tmp_path: Path) -> None:
    """In the table of the model on one core, or in one of their own; what is reported as 0 is left out."""
    random = draw()
    other = timed(processes(random, 3.0), mask="RKNN_NPU_CORE_0_1", nodeid="x")
    sizes = (sized("digits_cnn", 100_001, 2**20, 0), sized("probe_wide", 5000, 7000, 9000))
    tests = (other, timed(processes(random)), *sizes)
    write(tmp_path / "run", run_of(*tests))
    text, (both, one, wide) = suggested(rknpu, tmp_path, "run", "--margin", "20")
    assert (both.core_mask, both.sizes) == ("RKNN_NPU_CORE_0_1", {})
    assert one.sizes == {"weight_bytes": 120_002, "internal_bytes": 1_258_292}
    assert one.p50_ms is not None
    assert (wide.core_mask, wide.milliseconds) == (CORE, {})
    assert wide.sizes == {"weight_bytes": 6000, "internal_bytes": 8400, "dma_bytes": 10_800}
    assert "# Each size is what RKNN_QUERY_MEM_SIZE reported, plus 20 %." in text


def test_a_model_that_does_not_hold_still_has_a_size_all_the_same(rknpu, tmp_path: Path) -> None:
    drifting = [one * np.linspace(1.0, 1.2, one.size) for one in processes(draw())]
    write(tmp_path / "run", run_of(timed(drifting), sized("digits_cnn", 5000, 6000, 7000)))
    text, (one,) = suggested(rknpu, tmp_path, "run")
    assert (one.milliseconds, one.weight_bytes) == ({}, 5500)
    assert one.internal_bytes == 6600
    (why,) = [line for line in text.splitlines() if line.startswith("# no times for digits_cnn on rk-one: ")]
    assert "drift" in why


def test_undisturbed_samples_are_taken_where_there_are_any(rknpu, tmp_path: Path) -> None:
    """The longer run was disturbed: its times are no budget, nor is a start that was."""
    random = draw()
    hot = Measurement("disturbed by", "throttled:\n[[board]]", "")
    long = timed(processes(random, 9.0, runs=400), nodeid="long", measurements=(hot,))
    start = timed(
        [],
        requirement=("LAT-02",),
        nodeid="start",
        samples=(Samples("rknn_init", "ns", tuple((50_000_000 + n,) for n in range(10))),),
        measurements=(hot,),
    )
    write(tmp_path / "run", run_of(long, timed(processes(random, 2.0)), start))
    _, (one,) = suggested(rknpu, tmp_path, "run")
    assert one.p50_ms < 3
    assert one.init_ms is None
    write(tmp_path / "hot", run_of(long))
    text, budgets = suggested(rknpu, tmp_path, "hot")
    assert budgets == ()
    assert "# no times for digits_cnn on rk-one: disturbed by throttled:?[[board]]\n" in text


@pytest.mark.parametrize(
    ("given", "rounded"),
    [(2.0, 2.0), (2.001, 2.01), (8.359, 8.36), (26.61, 26.7), (150.2, 151.0), (0.1201, 0.121)],
)
def test_rounding_never_goes_below(given: float, rounded: float) -> None:
    assert rounded_up(given) == rounded


def test_measurements_that_name_no_model_are_left_alone(rknpu, tmp_path: Path) -> None:
    odd = result(
        measurements=(Measurement("model", "m", ""),), samples=(Samples("run", "ns", ((1, 2), (1, 2))),)
    )
    write(tmp_path / "run", run_of(odd))
    assert rknpu("compare", "run", "run").code == 0
    assert rknpu("suggest-budgets", "run").code == 2
