"""What a compiler, its log, or the way into a model may get wrong, made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.measure import MemoryLayout
from pytest_rknpu.models.execute import output_steps, run_onnx
from pytest_rknpu.session import UserModels, subject_of
from pytest_rknpu.session.builds import Build
from pytest_rknpu.sparsity import Mode
from pytest_rknpu.toolchain import BuildLog, Compiled, Plan
from pytest_rknpu.toolchain.log_rows import Cycles
from tests.proof.doctored import DoctoredFault, described_board, new_record
from tests.proof.stored_logs import sparse_plan, stored_log
from tests.suite_modules import suite

Floats = NDArray[np.float32]

MODEL = "digits_cnn"
STEPS_BEYOND = 6.0


# A build log that says something else


def _build(plan: Plan) -> Callable[[str], Build]:
    compiled = Compiled(Path("x"), "", Path("x"), None, "2.5.0", True)
    return lambda name: Build(compiled, BuildLog((plan,), "2.5.0", "2.5.0"), stored_log().graph)


def _memory_plan(change: Callable[[Plan], Plan]) -> Callable[[], Iterator[Any]]:
    def trials() -> Iterator[Any]:
        test = suite("memory/test_memory_plan.py").test_no_two_live_tensors_share_memory
        yield test, (_build(change(stored_log().plan)), new_record(), MODEL, described_board())

    return trials


def _overlap(plan: Plan) -> Plan:
    """The input of layer 1 moves onto the output of layer 1."""
    reads = list(plan.reads)
    place = reads[0].placement
    start = next(read for read in reads if read.id == 2).placement.start
    reads[0] = replace(reads[0], placement=replace(place, start=start, end=start + place.size))
    return replace(plan, reads=tuple(reads))


def _larger_total(plan: Plan) -> Plan:
    total = plan.internal_total
    return replace(plan, internal_total=replace(total, bytes=total.bytes + 64))


def _cpu_layers() -> Iterator[Any]:
    plan = stored_log().plan
    layers = tuple(replace(row, target="CPU") if row.id == 2 else row for row in plan.layers)
    test = suite("accuracy/test_cpu_operators.py").test_no_undeclared_operator_runs_on_the_cpu
    yield test, (described_board(), _build(replace(plan, layers=layers)), new_record(), MODEL)


def _more_cycles() -> Iterator[Any]:
    plan = stored_log().plan
    layers = list(plan.layers)
    dearest = max(layers, key=lambda layer: layer.cycles.total)
    cycles = dearest.cycles
    grown = Cycles(*(int(each * 1.2) for each in (cycles.ddr, cycles.npu, cycles.total)))
    layers[dearest.id] = replace(dearest, cycles=grown)
    test = suite("latency/test_predicted_cycles.py").test_predicted_cycles_have_not_grown
    yield test, (described_board(), _build(replace(plan, layers=tuple(layers))), new_record(), MODEL)


def _sparse(test: str, log: str, *arguments: object, **ratios: str) -> Callable[[], Iterator[Any]]:
    """A test of SPARSE-01, -02 or -06 on a doctored log of the sparse probes for rk3576."""

    def plan_of(onnx: bytes, calibration: Floats, *, sparse_infer: bool = True) -> Plan:
        return sparse_plan(log, **ratios)

    def trials() -> Iterator[Any]:
        module = suite("sparse/test_sparse_engagement.py")
        yield getattr(module, test), (described_board("rk3576"), plan_of, "2.5.0", new_record(), *arguments)

    return trials


# A board that computes something else


def _accuracy(change: Callable[[Any, Floats], list[Floats]]) -> Callable[[], Iterator[Any]]:
    def inference(model: Any, inputs: tuple[Floats, ...]) -> list[Floats]:
        return change(model, inputs[0])

    def layouts(subject: Any, outputs: Sequence[Floats]) -> list[MemoryLayout]:
        return [MemoryLayout(16, 1) for _ in outputs]

    def trials() -> Iterator[Any]:
        module = suite("accuracy/test_accuracy.py")
        subject = subject_of(MODEL, UserModels())
        yield module.test_board_agrees_with_the_float_model, (inference, new_record(), subject, layouts)
        emulated = described_board(runtime="emulator")
        arguments = (emulated, inference, new_record(), subject, layouts)
        yield module.test_board_agrees_with_the_quantised_model, arguments

    return trials


def _right(model: Any, inputs: Floats) -> list[Floats]:
    return run_onnx(model.qdq_onnx, inputs)


def _shifted(model: Any, inputs: Floats, steps: float) -> list[Floats]:
    step = output_steps(model.qdq_onnx)[0]
    return [output + steps * step for output in _right(model, inputs)]


def _saturated(model: Any, inputs: Floats) -> list[Floats]:
    """Scores beyond half of the range are cut off, as with a scale that is half of what it should be."""
    return [np.clip(output, output.min() / 2, output.max() / 2) for output in _right(model, inputs)]


def _preparation(wrong: str) -> Callable[[], Iterator[Any]]:
    def trials() -> Iterator[Any]:
        module = suite("accuracy/test_preparation.py")
        samples, onnx = module.pictures().samples, models.load(MODEL).float_onnx
        scores = run_onnx(onnx, module.PREPARATIONS[wrong](samples))[0]

        @pytest.mark.requirement("ACC-05")
        def test_mean_and_deviation_are_applied_once() -> None:
            module.judge_preparation(scores, samples, new_record().measure)

        yield test_mean_and_deviation_are_applied_once, ()

    return trials


TOOLCHAIN_FAULTS = (
    DoctoredFault(
        "plan-overlaps",
        "The memory plan puts a layer's input onto its output",
        ("MEM-12",),
        _memory_plan(_overlap),
    ),
    DoctoredFault(
        "plan-total-wrong",
        "The internal size of the log is not the end of its plan",
        ("MEM-12",),
        _memory_plan(_larger_total),
    ),
    DoctoredFault("layer-on-cpu", "A convolution falls to the CPU", ("ACC-06",), _cpu_layers),
    DoctoredFault(
        "cycles-grown",
        "The dearest layer is predicted to take 20 % more cycles than by the version before",
        ("LAT-09",),
        _more_cycles,
    ),
    DoctoredFault(
        "sparse-not-engaged",
        "A layer with pruned weights is built dense",
        ("SPARSE-01",),
        _sparse("test_pruned_layers_run_sparse", "aligned0-rk3576", Mode.INPUT, large="0%"),
    ),
    DoctoredFault(
        "sparse-beyond-the-limits",
        "A layer outside the guide's limits is built sparse",
        ("SPARSE-02",),
        _sparse("test_layers_outside_the_limits_stay_dense", "beyond1-rk3576", Mode.OUTPUT, logits="50%(OC)"),
    ),
    DoctoredFault(
        "sparse-on-dense-weights",
        "A layer with dense weights is built sparse",
        ("SPARSE-06",),
        _sparse("test_dense_weights_stay_dense", "dense-rk3576", bytes, large="50%(IC)"),
    ),
    DoctoredFault(
        "channels-swapped",
        "The model gets BGR for RGB",
        ("ACC-01", "ACC-02"),
        _accuracy(lambda model, inputs: _right(model, inputs[:, ::-1])),
    ),
    DoctoredFault(
        "normalised-twice",
        "Mean and deviation are applied to inputs that have them already",
        ("ACC-01", "ACC-02"),
        _accuracy(lambda model, inputs: _right(model, (inputs - 128) / 64)),
    ),
    DoctoredFault(
        "zero-point-off-by-one",
        "The output's zero point is one step off",
        ("ACC-02",),
        _accuracy(lambda model, inputs: _shifted(model, inputs, 1)),
    ),
    DoctoredFault(
        "zero-point-off-by-six",
        "The output's zero point is six steps off",
        ("ACC-01", "ACC-02"),
        _accuracy(lambda model, inputs: _shifted(model, inputs, STEPS_BEYOND)),
    ),
    DoctoredFault(
        "scale-saturates",
        "The output's scale is half of what it should be, so that large scores are cut off",
        ("ACC-01", "ACC-02"),
        _accuracy(_saturated),
    ),
    DoctoredFault(
        "picture-channels-swapped",
        "Pictures reach the model with red and blue swapped",
        ("ACC-05",),
        _preparation("red and blue swapped"),
    ),
    DoctoredFault(
        "picture-normalised-twice",
        "Pictures are normalised by the application and by the model",
        ("ACC-05",),
        _preparation("mean and deviation applied twice"),
    ),
)
