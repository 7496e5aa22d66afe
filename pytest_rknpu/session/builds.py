"""What RKNN-Toolkit2 made of a model for a board's SoC: the file, its log, the graph behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import RknpuError
from pytest_rknpu.session.user_artifacts import built

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.session.user_models import UserModel, UserModels
    from pytest_rknpu.toolchain import BuildLog, Compiled
    from pytest_rknpu.toolchain.fused_graph import FusedGraph


@dataclass(frozen=True)
class Build:
    """A compiled model with its parsed log. ``graph`` is None where the toolkit wrote none.

    ``own`` is the model of boards.toml, None for one that is shipped.
    """

    compiled: Compiled
    log: BuildLog
    graph: FusedGraph | None
    own: UserModel | None = None


def why_nothing_is_built(board: Board) -> str | None:
    """The proof for a skip: an emulated board loads packed ONNX, and without the toolkit nothing is built."""
    if board.runtime == "emulator":
        return (
            f"{board.name} is emulated: it loads packed ONNX, nothing is compiled and there is no build log"
        )
    from pytest_rknpu.toolchain import toolkit_status

    status = toolkit_status()
    if status.version is None:
        return f"there is no build log: {status.reason}; install it with: {status.install_command}"
    return None


@lru_cache(maxsize=64)
def build_of(platform: str, name: str, own: UserModels | None = None) -> Build:
    """The model ``name``, of boards.toml or of pytest_rknpu.models, compiled for a toolkit platform.

    ToolkitError: the toolkit is missing or fails, or its log has a layout that is not known. ModelError.
    UserModelError: it does not build the user's model.
    """
    from pytest_rknpu.toolchain import CompileOptions, compile_model

    user = own.get(name) if own is not None else None
    if user is not None:
        return own_build(platform, user)
    model = models.load(name)
    options = CompileOptions(target_platform=platform, calibration=model.calibration)
    return _read(compile_model(model.float_onnx, options))


def own_build(platform: str, model: UserModel, *, sparse_infer: bool | None = None) -> Build:
    """The user's model as ``build_of`` has it; ``sparse_infer`` None: where its table declares a mode."""
    return _read(built(model, platform, sparse_infer=sparse_infer), model)


def _read(compiled: Compiled, own: UserModel | None = None) -> Build:
    from pytest_rknpu.toolchain import parse_build_log
    from pytest_rknpu.toolchain.fused_graph import read_fused_graph

    log = parse_build_log(compiled.log.read_text(encoding="utf-8", errors="replace"))
    graph = compiled.fused_graph
    return Build(compiled, log, read_fused_graph(graph.read_bytes()) if graph else None, own)


def build_ahead(platform: str, names: Iterable[str], own: UserModels | None = None) -> None:
    """Compiles several models side by side, one process per CPU; ``build_of`` then finds them.

    A model that fails, or that this platform cannot have, is left to the test that asks for it.
    """
    from pytest_rknpu.toolchain.side_by_side import side_by_side

    def attempt(name: str) -> None:
        with contextlib.suppress(RknpuError, pytest.skip.Exception):
            build_of(platform, name, own)

    side_by_side(attempt, names)
