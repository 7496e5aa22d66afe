"""Sessions with boards: what the fixtures open and the suites run on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_rknpu.session.board_session import BoardSession, RuntimeCallError, connect
from pytest_rknpu.session.children import code_name, require_error, require_refused, require_survived
from pytest_rknpu.session.connected import ConnectedSession, connect_through_toolkit
from pytest_rknpu.session.evidence import found_afterwards, restarted
from pytest_rknpu.session.health import Fitness, fitness_of, require_fit
from pytest_rknpu.session.npu import FinishReport, LoadedModel, Npu
from pytest_rknpu.session.program import BIDIRECTIONAL, FROM_DEVICE, TO_DEVICE, Program
from pytest_rknpu.session.sensitivity import (
    Sensitivity,
    measure_incoherence,
    measure_sensitivity,
    require_run_matters,
    require_sensitive,
)
from pytest_rknpu.session.simulator import SimulatorSession
from pytest_rknpu.session.subjects import Subject, scores_of, subject_of
from pytest_rknpu.session.user_models import UserModel, UserModels
from pytest_rknpu.session.versions import identify
from pytest_rknpu.session.zero_copy import CACHEABLE, NON_CACHEABLE, ZeroCopy

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board

__all__ = [
    "BIDIRECTIONAL",
    "CACHEABLE",
    "FROM_DEVICE",
    "NON_CACHEABLE",
    "TO_DEVICE",
    "BoardSession",
    "ConnectedSession",
    "FinishReport",
    "Fitness",
    "LoadedModel",
    "Npu",
    "Program",
    "RuntimeCallError",
    "Sensitivity",
    "SimulatorSession",
    "Subject",
    "UserModel",
    "UserModels",
    "ZeroCopy",
    "code_name",
    "fitness_of",
    "found_afterwards",
    "measure_incoherence",
    "measure_sensitivity",
    "open_session",
    "require_error",
    "require_fit",
    "require_refused",
    "require_run_matters",
    "require_sensitive",
    "require_survived",
    "restarted",
    "scores_of",
    "subject_of",
]


@contextmanager
def open_session(
    board: Board, *, seed: int, run_dir: Path | None = None, lost: BoardSession | None = None
) -> Iterator[BoardSession | SimulatorSession | ConnectedSession]:
    """A session with ``board``, identified and ready; closed on the way out.

    ``lost`` is the session before it, if that did not end in order: what it left on the board is ended.

    Where RKNN-Toolkit2 is missing, simulator and connected boards skip with the command that installs it.
    Raises BoardError where the board cannot be reached or its runtime does not load.
    """
    if board.runtime == "connected":
        connected = connect_through_toolkit(board, _toolkit_version())
        yield connected
        connected.close()
        return
    if board.runtime == "simulator":
        session = SimulatorSession(board, _toolkit_version())
        yield session
        session.close()
        return
    with ExitStack() as resources:
        live = connect(board, seed=seed, resources=resources, lost=lost)
        resources.callback(live.close)
        identify(live)
        yield live


def _toolkit_version() -> str:
    import pytest

    from pytest_rknpu.toolchain import toolkit_status

    status = toolkit_status()
    if status.version is None:
        pytest.skip(f"{status.reason}; install it with: {status.install_command}")
    return status.version
