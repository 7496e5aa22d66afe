"""ACC-03 on emulated boards: passes where both ways agree, sees every fault, and skips with the proof."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.farm.run import Effort
from pytest_rknpu.session import Npu
from tests.lite2.conftest import NpuWith
from tests.suite_modules import suite

ACC03 = suite("accuracy/test_lite2.py")
MODEL = "probe_wide"


def judge(npu: Npu, model: str = MODEL) -> None:
    ACC03.test_equal_bytes_in_every_input_form(npu, model, Effort.QUICK)


def figures(npu: Npu) -> dict[str, object]:
    return {entry.name: entry.value for entry in npu.record.measurements}


@pytest.mark.parametrize("model", ["digits_cnn", "probe_chain", "probe_wide"])
def test_equal_ways_pass(npu_with: NpuWith, model: str) -> None:
    npu = npu_with()
    judge(npu, model)
    assert int(str(figures(npu)["samples compared"])) >= 4
    assert "RKNN-Toolkit-Lite2 2.5.0" in npu.record.notes
    assert npu.session.versions["lite"] == "2.5.0"
    assert "W rknn-toolkit-lite2 version: 2.5.0" in npu.finish().runtime_log


def test_every_core_mask(npu_with: NpuWith) -> None:
    npu = npu_with()
    ACC03.test_equal_bytes_with_every_core_mask(npu, MODEL, Effort.QUICK)
    assert figures(npu)["core masks"] == len(npu.core_masks)


@pytest.mark.parametrize("soc", ["rk3566", "rv1126b"])
def test_boards_with_one_core(npu_with: NpuWith, soc: str) -> None:
    judge(npu_with(soc=soc))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("wrong-byte", r"output 0 \(float32 .*want_float=1: .*differ"),
        ("nchw-not-transposed", "float32 nchw: output 0"),
        ("one-too-many", "returns 2 outputs, the general API 1"),
        ("load", r"RKNNLite\.load_rknn returned -1\n.*log:\n.*Invalid RKNN model path"),
        (
            "init",
            r"RKNNLite\.init_runtime\(core_mask=0\) returned -1\nwhat is known.*newer.*Invalid RKNN model",
        ),
        ("crash", "ended its process \\(SIGSEGV\\)"),
    ],
)
def test_faults_are_seen(npu_with: NpuWith, fault: str, words: str) -> None:
    npu = npu_with(fault)
    with pytest.raises(ConformanceFailure, match=f"(?s)board desk.*{words}"):
        judge(npu)
    npu.require_health()


def test_a_wrong_core_is_seen(npu_with: NpuWith) -> None:
    with pytest.raises(ConformanceFailure, match="probe_wide, RKNN_NPU_CORE_0_1, float32 nhwc: output 0"):
        ACC03.test_equal_bytes_with_every_core_mask(npu_with("wrong-cores"), MODEL, Effort.QUICK)


def test_a_package_that_hangs_is_ended(npu_with: NpuWith, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_rknpu.session.lite._CHILD_SECONDS", 3.0)
    npu = npu_with("hang")
    with pytest.raises(ConformanceFailure, match="did not come to an end within 3 s"):
        judge(npu)
    npu.require_health()


def test_outputs_in_the_models_own_type_are_compared_with_those(npu_with: NpuWith) -> None:
    judge(npu_with("as-it-is"))


def test_a_form_that_is_refused_is_noted(npu_with: NpuWith) -> None:
    npu = npu_with("refuse-nchw")
    judge(npu)
    refused = "float32 nchw: RKNNLite.inference returned None"
    assert any(refused in note for note in npu.record.notes)


@pytest.mark.parametrize(
    ("fault", "sdk_version", "words"),
    [
        ("raise", "API: 2.3.2", "nothing was compared"),
        (None, "API: 1.5.2 (c6b7b351a)", "computes with runtime 1.5.2, the C API with emulated 2.3.2"),
    ],
)
def test_what_proves_nothing_is_inconclusive(
    npu_with: NpuWith, fault: str | None, sdk_version: str, words: str
) -> None:
    npu = npu_with(fault, sdk_version)
    with pytest.raises(Inconclusive, match=words):
        judge(npu)


def test_nothing_is_known_of_the_runtime_and_nothing_is_said(npu_with: NpuWith) -> None:
    judge(npu_with(None, None))


def test_one_answer_for_everything_is_mistrusted(npu_with: NpuWith) -> None:
    npu = npu_with()
    npu.random = Zeros()  # type: ignore[assignment]
    model = npu.model(MODEL)
    samples = ACC03.samples_of(npu, model, ACC03.FORMS[0], 2)
    with pytest.raises(Inconclusive, match="mistrusted: every sample gave the same output"):
        ACC03.compare(npu, model, samples, {"": 0})


class Zeros:
    """Random numbers that are all the same."""

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.int64)


@pytest.mark.parametrize(
    ("fact", "ending", "words"),
    [
        (
            {"absent": "not installed for /usr/bin/python3"},
            pytest.skip.Exception,
            "desk: not installed for /usr/bin/python3$",
        ),
        ({"blocked": "barred"}, Inconclusive, "may be there or not: barred"),
    ],
)
def test_a_board_without_the_package(
    npu_with: NpuWith, monkeypatch: pytest.MonkeyPatch, fact: dict[str, str], ending: type, words: str
) -> None:
    npu = npu_with()
    monkeypatch.setattr(npu.session, "facts", {"lite_version": fact})
    with pytest.raises(ending, match=words):
        judge(npu)
