"""The file that a board loads for a model of the user's: packed for the emulator, ready, or built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_rknpu.errors import ConfigurationError, ModelError
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.session.user_faults import table_of, users_fault

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session.user_models import UserModel
    from pytest_rknpu.toolchain import Compiled, RknnHeader


def artifact_of(board: Board, model: UserModel, *, sparse_infer: bool | None = None) -> bytes:
    """The bytes of ``model`` for ``board``.

    Skips with the proof where there can be none. UserModelError: a file is bad, or for another SoC, or the
    toolkit does not build it.
    """
    if board.runtime == "emulator":
        return _packed(board, model)
    platform = board.platform
    ready = model.table.rknn.get(platform)
    if ready is not None:
        with users_fault(model.name):
            return _ready(model, Path(ready), platform)
    if model.source is None:
        there = ", ".join(model.table.rknn)
        pytest.skip(f"{table_of(model.name)} has no .rknn file for {platform} (it has: {there}), and no path")
    return built(model, platform, sparse_infer=sparse_infer).path.read_bytes()


def built(model: UserModel, platform: str, *, sparse_infer: bool | None = None) -> Compiled:
    """The model as RKNN-Toolkit2 builds it for ``platform``, once for the same inputs (`compile_model`).

    Skips with the install command where there is no toolkit. UserModelError: it does not build the model.
    """
    from pytest_rknpu.toolchain import compile_model, toolkit_status

    source, status = model.require_source(), toolkit_status()
    if status.version is None:
        pytest.skip(
            f"{table_of(model.name)} is not built for {platform}: {status.reason}; install it with: "
            f"{status.install_command}, or give a ready .rknn file"
        )
    with users_fault(model.name):
        return compile_model(source, model.options(platform, sparse_infer=sparse_infer))


def _packed(board: Board, model: UserModel) -> bytes:
    from pytest_rknpu.emulator import pack

    if model.qdq_onnx is None:
        pytest.skip(
            f"{board.name} is emulated, and {table_of(model.name)} is no QDQ ONNX graph (dtype = "
            '"prequantised"): the emulator runs only that'
        )
    with users_fault(model.name):
        return pack(model.qdq_onnx, board.soc)


def _ready(model: UserModel, file: Path, platform: str) -> bytes:
    from pytest_rknpu.toolchain import read_header

    where = f"{table_of(model.name, 'rknn')}: {file}"
    try:
        content = file.read_bytes()
        header = read_header(content)
    except OSError as error:
        raise ModelError(f"{where}: {error.strerror}") from None
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from None
    if platform not in {_platform_of(target) for target in header.target_platforms}:
        raise ModelError(f"{where} was built for {', '.join(header.target_platforms)}, not for {platform}")
    _require_inputs(model, header, where)
    return content


def _platform_of(target: str) -> str:
    """The toolkit's name of a SoC; the word itself where nobody here knows it."""
    try:
        return find_soc(target).toolkit_platform
    except ConfigurationError:
        return target


def _require_inputs(model: UserModel, header: RknnHeader, where: str) -> None:
    """The ready file takes what the table, or its float model, takes; else any board would look wrong."""
    forms = model.forms
    if not header.inputs or (not model.table.inputs and model.source is None):
        return
    takes = [list(entry.shape) for entry in header.inputs]
    wanted = [None if form.graph_nhwc or form.shape is None else list(form.shape) for form in forms]
    if len(takes) != len(wanted) or any(w not in (None, t) for w, t in zip(wanted, takes, strict=False)):
        raise ModelError(
            f"{where} takes inputs of shape {', '.join(map(str, takes))}; the model of this table takes "
            f"{', '.join(str(list(form.shape or '?')) for form in forms)}"
        )
