"""Outputs of an earlier run stand for a simulation of the same content: named as such, once per process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.session.simulator import simulated
from pytest_rknpu.toolchain import CompileOptions, ModelSource, Simulation, simulation_of, simulator

MODEL = models.load("probe_pointwise")
OPTIONS = CompileOptions("rk3588", MODEL.calibration)
INPUTS = MODEL.calibration[:2, np.newaxis]


@pytest.fixture(autouse=True)
def _run(toolkit: Path) -> Iterator[None]:
    another_run()
    yield
    another_run()


def another_run() -> None:
    """As in a process that has not simulated yet."""
    simulator._asked.clear()


def simulation(**changes: object) -> Simulation:
    return simulation_of(MODEL.float_onnx, replace(OPTIONS, **changes), [INPUTS])  # type: ignore[arg-type]


def test_another_run_is_given_what_an_earlier_one_simulated(toolkit: Path) -> None:
    first = simulation()
    assert first.stored == ""
    another_run()
    again = simulation()
    assert toolkit.read_text() == "rk3588\n"
    assert [output.tobytes() for output in again.outputs] == [output.tobytes() for output in first.outputs]
    assert [output.dtype for output in again.outputs] == [np.float32] * 2
    assert again.stored.startswith("not simulated again: outputs that RKNN-Toolkit2 9.9.9 gave on 20")


def test_who_asks_twice_gets_two_simulations(toolkit: Path) -> None:
    """Else a test that the simulator repeats itself would compare an array with itself."""
    simulation()
    assert simulation().stored == ""
    assert toolkit.read_text() == "rk3588\n" * 2
    another_run()
    assert simulation().stored != ""
    assert simulation().stored == ""
    assert toolkit.read_text() == "rk3588\n" * 3


def test_it_is_given_only_to_who_writes_it_down(toolkit: Path) -> None:
    notes: list[str] = []
    for _ in range(3):
        another_run()
        simulated(MODEL.float_onnx, OPTIONS, [INPUTS])
    assert toolkit.read_text() == "rk3588\n" * 3
    for _ in range(2):
        another_run()
        simulated(MODEL.float_onnx, OPTIONS, [INPUTS], notes.append)
    assert toolkit.read_text() == "rk3588\n" * 4
    assert [note[:20] for note in notes] == ["not simulated again:"]


def test_all_that_goes_in_is_part_of_the_key(toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ModelSource("load_onnx", {"model": ("model.onnx", MODEL.float_onnx)})

    def asked(key_of: ModelSource = source, inputs: np.ndarray = INPUTS, **changes: object) -> None:
        another_run()
        options = replace(OPTIONS, **changes)  # type: ignore[arg-type]
        assert simulation_of(key_of, options, [inputs]).stored == ""

    asked()
    asked(replace(source, layout="nhwc"))
    asked(replace(source, files={"model": ("model.onnx", MODEL.qdq_onnx)}))
    asked(inputs=np.nextafter(INPUTS, np.float32(9)))
    asked(inputs=INPUTS[:1])
    asked(calibration=None)
    asked(target_platform="rk3576")
    for name, value in (
        ("_version_of", lambda library: f"{library} 0"),
        ("_processor", lambda: ["flags : x"]),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(simulator, name, value)
            asked()
    another_run()
    assert simulation_of(source, OPTIONS, [INPUTS]).stored != ""


def test_large_outputs_are_not_stored(toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator, "_LARGEST_STORED", 1000)
    for _ in range(2):
        another_run()
        assert simulation().stored == ""


@pytest.mark.parametrize("damage", ["flipped byte", "no outputs", "no origin"])
def test_damaged_outputs_are_simulated_again(toolkit: Path, tmp_path: Path, damage: str) -> None:
    simulation()
    (outputs,) = tmp_path.glob("cache/toolkit/entries/*/outputs.npz")
    match damage:
        case "flipped byte":
            content = bytearray(outputs.read_bytes())
            content[-200] ^= 1
            outputs.write_bytes(content)
        case "no outputs":
            outputs.unlink()
        case "no origin":
            (outputs.parent / "origin.json").unlink()
    another_run()
    assert simulation().stored == ""
    another_run()
    assert simulation().stored != ""


BOARDS = """
[[board]]
name = "sim"
soc = "rk3588"
runtime = "simulator"
"""
SUITE = """
import pytest
from pytest_rknpu import models
from pytest_rknpu.toolchain import simulator

@pytest.mark.requirement("ACC-01")
def test_it(inference):
    model = models.load("probe_pointwise")
    assert len(inference(model, model.calibration[:2])) == 2
"""


def test_the_result_of_a_test_says_so(pytester: pytest.Pytester, toolkit: Path) -> None:
    pytester.makefile(".toml", boards=BOARDS)
    pytester.makepyfile(SUITE)
    notes = []
    for run in ("first", "second"):
        another_run()
        outcome = pytester.runpytest(
            "--boards", "boards.toml", "--rknpu-report", run, "-p", "no:cacheprovider"
        )
        outcome.assert_outcomes(passed=1)
        *_, line = (pytester.path / run / "results.jsonl").read_text().splitlines()
        notes.append(json.loads(line)["notes"])
    assert toolkit.read_text() == "rk3588\n"
    assert notes[0] == []
    assert notes[1][0].startswith("not simulated again: outputs that RKNN-Toolkit2 9.9.9 gave on ")
