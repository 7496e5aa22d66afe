"""RKNN-Toolkit2 itself, with no device connected: its own error, in one sentence, in bounded time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import BoardError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import open_session
from pytest_rknpu.session.artifacts import compiled
from pytest_rknpu.session.connected import reaching
from pytest_rknpu.toolchain import CompileOptions, toolkit_status
from pytest_rknpu.toolchain.board import (
    Device,
    analyse_layers,
    board_inference,
    board_memory,
    board_performance,
    board_sdk_version,
    list_devices,
)
from pytest_rknpu.toolchain.process import ChildFailed

STATUS = toolkit_status()
pytestmark = pytest.mark.skipif(
    STATUS.version is None, reason=f"{STATUS.reason}; install it with: {STATUS.install_command}"
)
POINTWISE = models.load("probe_pointwise")
BOARD = Board.model_validate({"name": "lab", "soc": "rk3588", "runtime": "connected"})
#: Far more than a toolkit takes that finds nothing, far less than one that waits for ever.
LIMIT_S = 60.0


@pytest.fixture(scope="module", autouse=True)
def _adb_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An adb server on a port of its own, ended with these tests: other users of adb are left alone."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        patch.setenv("RKNPU_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "connected-cache"))
        yield
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as server:
        server.sendall(b"0009host:kill")  # adb's protocol: four hex digits of length, then the service
        server.recv(64)


@pytest.fixture(scope="module")
def _no_device() -> None:
    started = time.monotonic()
    devices = list_devices()
    assert time.monotonic() - started < LIMIT_S
    if devices.adb or devices.ntb:
        pytest.skip("a device is connected to this host")


@pytest.mark.usefixtures("_no_device")
@pytest.mark.parametrize("device_id", [None, "192.0.2.7:5555"])
def test_opening_is_one_clear_board_error(device_id: str | None) -> None:
    board = BOARD.model_copy(update={"device_id": device_id})
    started = time.monotonic()
    with pytest.raises(BoardError) as raised, open_session(board, seed=1):
        pass
    assert time.monotonic() - started < LIMIT_S
    text = str(raised.value)
    assert text.startswith("board lab: RKNN-Toolkit2 finds no device")
    assert "no device is connected" in text
    assert "adb devices" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "call", [board_sdk_version, board_memory, board_performance], ids=lambda call: call.__name__
)
def test_each_call_says_the_toolkits_own_words(call: object) -> None:
    rknn = compiled("probe_pointwise", "rk3588")
    started = time.monotonic()
    with pytest.raises(BoardError) as raised, reaching(BOARD):
        call(rknn, Device("rk3588", "no-such-device"))  # type: ignore[operator]
    assert time.monotonic() - started < LIMIT_S
    assert "failed in init_runtime" in str(raised.value)
    assert "device 'no-such-device' not found" in str(raised.value)


def test_inference_does_too() -> None:
    rknn = compiled("probe_pointwise", "rk3588")
    with pytest.raises(BoardError, match="device 'no-such-device' not found"), reaching(BOARD):
        board_inference(rknn, Device("rk3588", "no-such-device"), [POINTWISE.calibration[:1, None]])


def test_analysis_on_a_board_does_too_and_on_the_simulator_works() -> None:
    options = CompileOptions("rk3588", POINTWISE.calibration)
    sample = [POINTWISE.calibration[:1]]
    layers = analyse_layers(POINTWISE.float_onnx, options, sample)
    measured = [layer for layer in layers if layer.entire is not None]
    assert measured
    assert all(layer.runtime_entire is None for layer in layers)
    assert all((layer.entire or 0) > 0.99 for layer in measured)
    with pytest.raises(BoardError, match="device 'no-such-device' not found"), reaching(BOARD):
        analyse_layers(POINTWISE.float_onnx, options, sample, Device("rk3588", "no-such-device"))


def test_a_model_for_another_soc_is_the_models_affair(tmp_path: Path) -> None:
    """The toolkit compares target and file before it looks for the device."""
    rknn = compiled("probe_pointwise", "rk3576")
    with pytest.raises((ChildFailed, BoardError), match=r"init_runtime|load_rknn"), reaching(BOARD):
        board_sdk_version(rknn, Device("rk3588", "no-such-device"))
