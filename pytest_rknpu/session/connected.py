"""A board without Python, driven from this host by RKNN-Toolkit2 over adb and rknn_server.

Meant for RV1103, RV1106 and Android. There is no agent on such a board, so no command lists: it infers, and
it says how long a frame takes and what memory a model has. The toolkit runs in a process of its own for each
call, with a bound; whatever keeps it from the board is one BoardError with the toolkit's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_rknpu.errors import BoardError, BoardLost, ModelError, ToolkitError
from pytest_rknpu.inventory.socs import SoC
from pytest_rknpu.models.user_data import Floats
from pytest_rknpu.session.artifacts import compiled
from pytest_rknpu.session.user_artifacts import artifact_of, built
from pytest_rknpu.session.user_faults import users_fault
from pytest_rknpu.session.user_inference import Inputs, as_inputs
from pytest_rknpu.session.user_models import UserModel, with_batch
from pytest_rknpu.toolchain import board as device_calls
from pytest_rknpu.toolchain.board import Device, Devices
from pytest_rknpu.toolchain.process import ChildFailed

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.models import Model
    from pytest_rknpu.toolchain import Plan
    from pytest_rknpu.toolchain.layer_errors import LayerError
    from pytest_rknpu.toolchain.memory_report import MemoryUse
    from pytest_rknpu.toolchain.performance_report import Performance

_SMALLEST_MODEL = "probe_pointwise"
#: In these calls of the toolkit the board is at work; elsewhere the toolkit or the model is to blame.
_BOARD_STEPS = frozenset(
    {"list_devices", "init_runtime", "inference", "eval_perf", "eval_memory", "get_sdk_version"}
)
_REMEDY = (
    "see that `adb devices` lists the board as `device`, that rknn_server runs on it (start_rknn.sh), and "
    "that device_id and soc or target in boards.toml are its own"
)
_NO_AGENT = "absent (a connected board has no agent that could look)"
Result = TypeVar("Result")


class ConnectedSession:
    """Stands beside BoardSession with the attributes that reports read; no C API behind it.

    Use ``open_session``. After a call that did not end by its deadline ``alive`` is False.
    """

    def __init__(self, board: Board, toolkit_version: str) -> None:
        self.board = board
        self.soc: SoC = board.chip
        self.device = Device(board.platform, board.device_id)
        self.facts: Mapping[str, Any] = {}
        self.alive = True
        self.versions: dict[str, str] = {
            **dict.fromkeys(("bsp", "kernel", "driver", "clocks"), _NO_AGENT),
            "toolkit": toolkit_version,
            "model_compiler": toolkit_version,
        }

    def inference(
        self, model: Model | UserModel, inputs: Inputs, *, sparse_infer: bool | None = None
    ) -> list[Floats]:
        """All samples on the board; per output an (N, ...) array. The toolkit normalises and quantises.

        Skips with the proof where a model of boards.toml cannot be had for this SoC. Raises BoardError.
        """
        layout = "nhwc" if isinstance(model, UserModel) and model.forms[0].graph_nhwc else "nchw"
        rknn = self.artifact(model, sparse_infer=sparse_infer)
        samples = with_batch(as_inputs(inputs))
        return self._on_board(
            model, lambda: device_calls.board_inference(rknn, self.device, samples, layout=layout)
        )

    def run_file(self, model: Model, rknn: bytes, inputs: Floats) -> list[Floats]:
        """As ``inference``, with a file ``rknn`` that was built of ``model`` in another way."""
        samples = with_batch([inputs])
        return self._on_board(model, lambda: device_calls.board_inference(rknn, self.device, samples))

    def performance(
        self, model: Model | UserModel, *, count: int = 1, per_layer: bool = False
    ) -> list[Performance]:
        """``count`` times ``eval_perf``, on one connection, with the clocks that the toolkit fixes.

        ``per_layer`` (``perf_debug``) makes frames slower; RV1103 and RV1106 do not have it. Raises
        BoardError.
        """
        rknn = self.artifact(model)
        return self._on_board(
            model, lambda: device_calls.board_performance(rknn, self.device, count=count, per_layer=per_layer)
        )

    def memory(self, model: Model | UserModel) -> MemoryUse:
        """``eval_memory`` of the model, in bytes. Raises BoardError."""
        rknn = self.artifact(model)
        return self._on_board(model, lambda: device_calls.board_memory(rknn, self.device))

    def layers(self, model: UserModel, sample: Sequence[Floats]) -> tuple[LayerError, ...]:
        """``accuracy_analysis`` of one sample, (1, ...) for each input, on simulator and board."""
        source, options = model.require_source(), model.options(self.device.target)
        return self._on_board(
            model, lambda: device_calls.analyse_layers(source, options, sample, self.device)
        )

    def artifact(self, model: Model | UserModel, *, sparse_infer: bool | None = None) -> bytes:
        """The .rknn file of ``model`` for this board. Raises ModelError, ToolkitError, UserModelError."""
        if isinstance(model, UserModel):
            return artifact_of(self.board, model, sparse_infer=sparse_infer)
        return compiled(model.name, self.device.target, sparse_infer=bool(sparse_infer))

    def plan(self, model: Model | UserModel) -> Plan:
        """The compiler's tables of what ``artifact`` gives. Skips for a ready .rknn file: it has no log."""
        from pytest_rknpu.toolchain import CompileOptions, compile_model, parse_build_log

        target = self.device.target
        if isinstance(model, UserModel):
            if target in model.table.rknn:
                pytest.skip(f"{model.name}: the ready .rknn file for {target} has no build log")
            log = built(model, target).log
        else:
            log = compile_model(model.float_onnx, CompileOptions(target, model.calibration)).log
        return parse_build_log(log.read_text(encoding="utf-8", errors="replace")).plan

    def cut(self) -> None:
        """See BoardSession."""
        self.alive = False

    def close(self) -> None:
        """Nothing is held between calls; adb's server stays, as adb has it."""
        self.alive = False

    def _on_board(self, model: Model | UserModel, call: Callable[[], Result]) -> Result:
        """What fails before the board is at work is the model's affair, the user's where it is theirs."""
        try:
            with reaching(self.board):
                return call()
        except BoardLost:
            self._given_up()
            raise
        except ChildFailed as failure:
            if failure.timed_out:
                self._given_up()
            with users_fault(model.name) if isinstance(model, UserModel) else nullcontext():
                raise

    def _given_up(self) -> None:
        """What the board does now nobody knows; the next test gets a session of its own."""
        self.alive = False


@contextmanager
def reaching(board: Board) -> Iterator[None]:
    """Around calls of the toolkit that need the board: what fails there is a BoardError."""
    try:
        yield
    except ChildFailed as failure:
        if failure.step not in _BOARD_STEPS and not _names_board(failure):
            raise
        kind = BoardLost if failure.timed_out else BoardError
        raise kind(f"board {board.name}: not reached through RKNN-Toolkit2: {failure}; {_REMEDY}") from None


def _names_board(failure: ChildFailed) -> bool:
    """accuracy_analysis reaches the board only after it has worked on the host for a while."""
    return failure.step == "accuracy_analysis" and "board" in failure.words.lower()


def connect_through_toolkit(board: Board, toolkit_version: str) -> ConnectedSession:
    """Find the board among the devices, ask it for its versions; the session is then ready.

    Raises BoardError: no such device, or it does not answer. Within about three minutes, whatever happens.
    """
    session = ConnectedSession(board, toolkit_version)
    with reaching(board):
        require_listed(board, device_calls.list_devices())
        try:
            rknn = compiled(_SMALLEST_MODEL, session.device.target)
        except (ModelError, ToolkitError) as error:
            reason = f"probe blocked ({str(error).splitlines()[0]})"
            session.versions |= dict.fromkeys(("runtime", "rknn_server", "driver_api"), reason)
            return session
        told = device_calls.board_sdk_version(rknn, session.device)
    absent = "absent (get_sdk_version does not say)"
    session.versions |= {
        "runtime": told.runtime or told.api,
        "rknn_server": told.server or absent,
        "driver_api": told.driver or absent,
    }
    return session


def require_listed(board: Board, devices: Devices) -> None:
    """BoardLost where the board is not among ``devices``, BoardError where nobody can tell which it is."""
    listed = (*devices.adb, *devices.ntb)
    there = f"there are: {', '.join(listed)}" if listed else "no device is connected"
    if not listed or (board.device_id is not None and board.device_id not in listed):
        wanted = f"no device {board.device_id}" if board.device_id else "no device"
        raise BoardLost(f"board {board.name}: RKNN-Toolkit2 finds {wanted} by adb ({there}); {_REMEDY}")
    if board.device_id is None and len(listed) > 1:
        raise BoardError(
            f"board {board.name}: several devices are connected ({', '.join(listed)}); say in boards.toml "
            "which one it is, with device_id"
        )
