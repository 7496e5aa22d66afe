"""A connected board, in each mood: what the session gives, and what it raises in bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from connected.conftest import GOOD, INTERNAL, WEIGHTS, SetMood

from pytest_rknpu import models
from pytest_rknpu.errors import BoardError, BoardLost, ToolkitError, UserModelError
from pytest_rknpu.inventory.model_files import read_models
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.session import ConnectedSession, UserModel, open_session
from pytest_rknpu.session import connected as connected_session
from pytest_rknpu.session.artifacts import compiled
from pytest_rknpu.toolchain import board as calls
from pytest_rknpu.toolchain.board import Device
from pytest_rknpu.toolchain.process import ChildFailed

DIGITS = models.load("digits_cnn")


def board(**keys: Any) -> Board:
    return Board.model_validate({"name": "lab", "soc": "rk3588", "runtime": "connected", **keys})


@contextmanager
def opened(**keys: Any) -> Iterator[ConnectedSession]:
    with open_session(board(**keys), seed=1) as session:
        assert isinstance(session, ConnectedSession)
        yield session


def test_versions_inference_time_and_memory(mood: SetMood) -> None:
    with opened(device_id="0123456789ABCDEF") as session:
        assert session.versions["runtime"] == "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"
        assert session.versions["rknn_server"].startswith("2.3.2 (1842325")
        assert session.versions["kernel"].startswith("absent (")
        assert session.versions["toolkit"] == "9.9.9"
        inputs = DIGITS.calibration[:5]
        (scores,) = session.inference(DIGITS, inputs)
        np.testing.assert_allclose(scores, run_onnx(DIGITS.float_onnx, inputs)[0], rtol=1e-4, atol=1e-4)
        times = session.performance(DIGITS, count=3)
        assert [(report.total_us, report.fps) for report in times] == [(7140.0, 140.06)] * 3
        used = session.memory(DIGITS)
        assert (used.weight, used.internal, used.resolution) == (WEIGHTS, INTERNAL, 0)
        assert session.plan(DIGITS).weight_total.bytes == pytest.approx(WEIGHTS, abs=64)
        (report,) = session.performance(DIGITS, per_layer=True)
        assert [layer.operator for layer in report.layers] == ["InputOperator", "ConvRelu", "OutputOperator"]
        assert report.cpu_operators == ()
    assert not session.alive


@pytest.mark.parametrize(
    "changes",
    [
        {"perf": {"total_time": 7140, "fps": 140.06}},
        {"printed": "=====\nPerformance\n=====\nTotal Time(us): 7140FPS: 140.06\n====="},
        {"perf": {"note": 1}, "printed": GOOD["perf"]},
    ],
    ids=["dict", "printed", "printed-too"],
)
def test_other_forms_of_eval_perf(mood: SetMood, changes: dict[str, Any]) -> None:
    mood(**changes)
    with opened() as session:
        (report,) = session.performance(DIGITS)
        assert (report.total_us, report.fps) == (7140.0, 140.06)


@pytest.mark.parametrize(
    ("changes", "keys", "words"),
    [
        ({"adb": []}, {}, "finds no device by adb (no device is connected)"),
        ({"adb": ["other"]}, {"device_id": "mine"}, "finds no device mine by adb (there are: other)"),
        ({"adb": ["one", "two"]}, {}, "several devices are connected (one, two); say in boards.toml which"),
        ({"init": "refuse"}, {}, "failed in init_runtime (returned -1): E init_runtime: Connect to Device"),
        ({"sdk": "nothing known"}, {}, "named no API version"),
    ],
    ids=["none", "another", "several", "refused", "unknown-words"],
)
def test_boards_that_cannot_be_opened(
    mood: SetMood, changes: dict[str, Any], keys: dict[str, Any], words: str
) -> None:
    mood(**changes)
    kind = ToolkitError if "sdk" in changes else BoardError
    with pytest.raises(kind) as raised, opened(**keys):
        pass
    assert words in str(raised.value)
    if kind is BoardError:
        assert "board lab" in str(raised.value)
        assert "device_id" in str(raised.value)


@pytest.mark.parametrize("changes", [{"list": "hang"}, {"init": "hang"}], ids=["adb", "runtime"])
def test_a_board_that_hangs_is_given_up_in_time(
    mood: SetMood, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str]
) -> None:
    mood(**changes)
    for call in ("list_devices", "board_sdk_version"):
        monkeypatch.setattr(calls, call, _within(getattr(calls, call), 3.0))
    started = time.monotonic()
    with (
        pytest.raises(BoardLost, match=r"did not end within 3 s \(in step (list_devices|init_runtime)\)"),
        opened(),
    ):
        pass
    assert time.monotonic() - started < 40


def _within(call: Any, seconds: float) -> Any:
    return lambda *arguments: call(*arguments, deadline_s=seconds)


@pytest.mark.parametrize(
    ("inference", "words"),
    [
        ("none", "returned None for sample 0"),
        ("pipe", "-9(ERROR_PIPE)"),
    ],
)
def test_inference_that_fails_is_the_boards_affair(mood: SetMood, inference: str, words: str) -> None:
    mood(inference=inference)
    with opened() as session:
        with pytest.raises(BoardError) as raised:
            session.inference(DIGITS, DIGITS.calibration[:1])
        assert words in str(raised.value)
        assert session.alive


def test_a_session_whose_inference_hangs_is_dead(mood: SetMood, monkeypatch: pytest.MonkeyPatch) -> None:
    mood(inference="hang")
    monkeypatch.setattr(calls, "CONNECT_S", 3.0)
    monkeypatch.setattr(calls, "_PER_SAMPLE_S", 0.1)
    with opened() as session:
        with pytest.raises(BoardLost):
            session.inference(DIGITS, DIGITS.calibration[:1])
        assert not session.alive


def test_target_is_what_models_are_built_for(mood: SetMood) -> None:
    with opened(soc="rk3568", target="rk3566") as session:
        assert session.device.target == "rk3566"
        assert session.inference(DIGITS, DIGITS.calibration[:1])[0].shape == (1, 10)


def test_what_fails_before_the_board_is_no_board_error(mood: SetMood) -> None:
    with pytest.raises(ChildFailed), connected_session.reaching(board()):
        raise ChildFailed("no", step="build", timed_out=False, words="E build: no")


def test_layers_on_simulator_and_board(mood: SetMood) -> None:
    from pytest_rknpu.toolchain import CompileOptions
    from pytest_rknpu.toolchain.board import analyse_layers

    options = CompileOptions("rk3588", DIGITS.calibration)
    first, fused = analyse_layers(DIGITS.float_onnx, options, [DIGITS.calibration[:1]], Device("rk3588"))
    assert (first.entire, first.single, first.runtime_entire, first.runtime_single) == (
        0.99,
        0.98,
        0.97,
        0.96,
    )
    assert fused.entire is None


def test_a_users_model_that_is_not_loaded_is_its_owners_affair(
    mood: SetMood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shipped model is not; and once the board is at work it is the board."""
    (tmp_path / "digits.onnx").write_bytes(DIGITS.float_onnx)
    np.savez(tmp_path / "data.npz", x=DIGITS.calibration)
    keys = {"name": "mine", "path": "digits.onnx", "calibration": "data.npz"}
    ((table,), _) = read_models(tmp_path / "boards.toml", [keys])
    with opened() as session:
        assert session.inference(UserModel(table), DIGITS.calibration[:1])[0].shape == (1, 10)
        mood(load="refuse")
        with pytest.raises(UserModelError, match=r'^\[\[model\]\] "mine": .*Invalid RKNN format'):
            session.inference(UserModel(table), DIGITS.calibration[:1])
        with pytest.raises(ChildFailed, match="Invalid RKNN format"):
            session.inference(DIGITS, DIGITS.calibration[:1])
        mood(init="refuse")
        with pytest.raises(BoardError, match="Connect to Device Failure"):
            session.inference(UserModel(table), DIGITS.calibration[:1])


def test_each_board_and_model_has_a_log_of_its_own(mood: SetMood) -> None:
    """That of another failure must not replace it before it is read."""
    mood(init="refuse")
    logs = set()
    for serial, platform in (("A", "rk3588"), ("B", "rk3588"), ("A", "rk3576")):
        with pytest.raises(ChildFailed) as raised:
            calls.board_memory(compiled("probe_pointwise", platform), Device(platform, serial))
        logs.add(str(raised.value).rpartition("whole log: ")[2])
    assert len(logs) == 3
    assert all("Connect to Device Failure" in Path(log).read_text() for log in logs)
