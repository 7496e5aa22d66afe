"""The emulator's latency models really wait, and do what they are named for."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest
from latency.conftest import OpenNpu

from pytest_rknpu.agent.abi import rknn_query_cmd
from pytest_rknpu.emulator import open_library
from pytest_rknpu.emulator.latency import LATENCY_MODELS, THROTTLE_FILE, Pace
from pytest_rknpu.errors import BoardError, ConfigurationError
from pytest_rknpu.measure import instabilities
from pytest_rknpu.session import Npu, Program, ZeroCopy
from pytest_rknpu.session.timing import (
    Comparison,
    _at_rest,
    by_call,
    compare_calls,
    interleaved_order,
    open_context,
    shares,
    time_model,
    timing_inputs,
)

STEADY = LATENCY_MODELS["steady"]


def test_a_run_takes_the_time_of_its_model(npu_of: OpenNpu, undisturbed: bool) -> None:
    npu = npu_of(latency_model="steady")
    model = npu.model("probe_pointwise")
    timing = time_model(npu, model, "RKNN_NPU_CORE_0", samples=40, processes=2, warm_up=2)
    expected = STEADY.base + STEADY.per_layer
    for process in timing.processes:
        samples = [sample / 1e6 for sample in process.wall_ns]
        assert min(samples) > 0.95 * expected
        if undisturbed:
            assert statistics.median(samples) == pytest.approx(expected, rel=0.03)
        assert process.init_ns / 1e6 >= STEADY.init
        assert process.first_ns / 1e6 >= expected * 0.95 + STEADY.first
        assert all(
            perf * 1000 < wall for perf, wall in zip(process.perf_run_us, process.wall_ns, strict=True)
        )
    assert len(timing.processes) == 2
    assert len(timing.readings) == 3
    assert 0 < timing.no_op_us < 100
    assert timing.processes[0].wall_ns != timing.processes[1].wall_ns  # fresh processes differ


def test_without_a_model_nothing_waits(npu_of: OpenNpu) -> None:
    npu = npu_of()
    timing = time_model(npu, npu.model("probe_pointwise"), None, samples=20, processes=1, warm_up=1)
    assert min(timing.processes[0].wall_ns) / 1e6 < STEADY.base / 2


def test_a_pace_is_a_function_of_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The times themselves, without waiting for them."""
    monkeypatch.setattr("pytest_rknpu.emulator.latency._raise_priority", lambda: None)
    file = tmp_path / THROTTLE_FILE
    file.parent.mkdir(parents=True)

    def runs(name: str, count: int, **keys: int) -> list[float]:
        pace = Pace(LATENCY_MODELS[name], 1, str(tmp_path))
        given = {"context": 1, "layers": 5, "core_mask": 1, **keys}
        return [pace._run(**given, inputs=number) for number in range(count)][1:]

    steady = runs("steady", 400)
    assert statistics.median(steady) == pytest.approx(7.0, rel=0.005)
    assert instabilities([np.array(steady)]) == []
    for name, words in [
        ("two-modes", "two modes"),
        ("tail", "outliers"),
        ("correlated", "successive runs depend"),
        ("drift", "drift"),
    ]:
        assert any(words in reason for reason in instabilities([np.array(runs(name, 400))])), name
    assert not file.exists()
    assert max(runs("throttle", 10)) < 7.3
    assert not file.exists()
    assert min(runs("throttle", 60)[20:]) > 8.5
    assert file.read_text() == "1\n"
    assert statistics.median(runs("slow-cores", 50, core_mask=3)) == pytest.approx(9.8, rel=0.01)
    assert statistics.median(runs("slow-cores", 50, core_mask=4)) == pytest.approx(7.0, rel=0.01)


def test_a_known_input_is_faster_with_the_model_for_that(npu_of: OpenNpu, undisturbed: bool) -> None:
    if not undisturbed:
        pytest.skip("this user may not use SCHED_FIFO: times of this host are disturbed")
    npu = npu_of(latency_model="cached")
    model = npu.model("probe_pointwise")
    first, second = npu.random_inputs(model, 2)
    io = ZeroCopy("a", model)
    program = Program()
    open_context(program, io, None, [first])
    program.time_runs([io.context], "again", count=5, warm_up=1)
    with program.aside() as before:
        program.write_cycle(io.input, [second, first])
    program.time_runs([io.context], "new", count=5, before=before)
    values = npu.execute(program)
    again, new = (statistics.median(values[name]["wall_ns"]) for name in ("again", "new"))
    assert again == pytest.approx(0.6 * new, rel=0.05)


def test_perf_run_and_sync_follow_the_model(npu_of: OpenNpu) -> None:
    npu = npu_of(latency_model="long-perf-run")
    model = npu.model("probe_pointwise")
    io = ZeroCopy("a", model)
    program = Program()
    open_context(program, io, None, timing_inputs(npu, model))
    program.timestamp("before")
    program.run(io.context)
    program.timestamp("after")
    program.query(io.context, rknn_query_cmd.RKNN_QUERY_PERF_RUN, "perf")
    program.create_mem("memory", io.context, 2**20)
    program.time_syncs("memory", io.context, [1, 3], bytes([0, 1] * 5), "syncs")
    values = npu.execute(program)
    assert values["perf"]["run_duration"] * 1000 > values["after"] - values["before"]
    syncs = np.array(values["syncs"]["wall_ns"]) / 1e6
    assert syncs[0::2].min() >= 0.2
    assert syncs[1::2].min() >= 0.35


def test_a_deadline_ends_runs_that_really_wait(npu_of: OpenNpu) -> None:
    """Of the session's own process the loop gives up; a child is killed. The board goes on either way."""
    npu = npu_of(latency_model="steady")
    model = npu.model("probe_pointwise")
    program = Program()
    io = ZeroCopy("a", model)
    open_context(program, io, None, timing_inputs(npu, model))
    program.time_runs([io.context], "runs", count=100_000)
    with pytest.raises(BoardError, match=r"out of time after \d+ of 100000 timed runs; the board itself"):
        npu.execute(program, deadline_s=0.5)
    npu.finish()
    patient = Program()
    with patient.child("process", deadline_s=1.0):
        patient.include(program)
    assert npu.execute(patient)["process"]["outcome"] == "timeout"
    timing = time_model(npu, model, None, samples=4, processes=2, warm_up=0)
    assert len(timing.processes) == 2


def test_unknown_models_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown latency model 'sluggish'; known: steady, "):
        open_library({"soc": "rk3588", "latency_model": "sluggish"})


def test_every_model_says_what_it_shows() -> None:
    for name, model in LATENCY_MODELS.items():
        assert model.shows, name


class OnItsWay:
    """Stands for an NPU whose driver says these loads, one after the other."""

    def __init__(self, *loads: int) -> None:
        self.loads = list(loads)
        self.session = self

    def conditions(self) -> dict[str, object]:
        return {"npu_load": {"value": [self.loads.pop(0)]}}


@pytest.mark.parametrize(("loads", "last"), [((0, 9), 0), ((80, 20, 0, 9), 0), ((80, 70, 60, 50, 9), 50)])
def test_one_waits_for_an_npu_at_rest(
    monkeypatch: pytest.MonkeyPatch, loads: tuple[int, ...], last: int
) -> None:
    """The driver's load is of the last second; what does not go away is somebody else's."""
    monkeypatch.setattr("pytest_rknpu.session.timing._LOOK_S", 0.0)
    npu = OnItsWay(*loads)
    assert _at_rest(npu)["npu_load"] == {"value": [last]}
    assert npu.loads == [9]


def test_calls_are_compared_in_blocks(npu_of: OpenNpu) -> None:
    npu = npu_of()
    model = npu.model("probe_pointwise")
    data = timing_inputs(npu, model)
    orders: list[bytes] = []

    def record(order: bytes) -> Program:
        orders.append(order)
        program = Program()
        for context in ("a", "b"):
            open_context(program, ZeroCopy(context, model), None, data)
        program.time_runs(["a", "b"], "timed", order=order)
        return program

    found = compare_calls(npu, ["a", "b"], record, blocks=7, processes=2)
    assert [table.shape for table in found.processes] == [(4, 2), (3, 2)]
    assert [len(order) for order in orders] == [8, 6]
    assert len(found.readings) == 3
    (ratios, _) = found.ratios("a", to="b")
    np.testing.assert_allclose(ratios, found.processes[0][:, 0] / found.processes[0][:, 1])
    np.testing.assert_array_equal(found.milliseconds("b")[1], found.processes[1][:, 1])


def test_blocks_have_every_call_once_in_random_order() -> None:
    order = interleaved_order(np.random.default_rng(1), 3, 200)
    blocks = [tuple(order[start : start + 3]) for start in range(0, 600, 3)]
    assert all(sorted(block) == [0, 1, 2] for block in blocks)
    assert len(set(blocks)) == 6
    first = [block[0] for block in blocks]
    assert all(40 <= first.count(call) <= 95 for call in range(3))


def test_samples_find_their_call() -> None:
    table = by_call(bytes([1, 0, 0, 1]), [10.0, 20.0, 30.0, 40.0], 2)
    np.testing.assert_array_equal(table, [[20.0, 10.0], [30.0, 40.0]])
    comparison = Comparison(("a", "b"), (table,), ())
    np.testing.assert_array_equal(comparison.ratios("b", "a")[0], [0.5, 40 / 30])


@pytest.mark.parametrize(("total", "parts", "expected"), [(10, 3, [4, 3, 3]), (5, 5, [1] * 5), (6, 1, [6])])
def test_whole_parts(total: int, parts: int, expected: list[int]) -> None:
    assert shares(total, parts) == expected


def test_inputs_are_full_of_numbers_of_their_type(npu_of: OpenNpu) -> None:
    npu: Npu = npu_of()
    model = npu.model("probe_stride")
    (memory,) = timing_inputs(npu, model)
    assert len(memory) == model.description.inputs[0].native_size
    assert len(set(memory)) > 200
