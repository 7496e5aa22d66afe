"""What RKNN-Toolkit2 made of a shipped model for a board's SoC: the file, its log, the graph behind it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_rknpu import models
from pytest_rknpu.errors import RknpuError

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board
    from pytest_rknpu.toolchain import BuildLog, Compiled
    from pytest_rknpu.toolchain.fused_graph import FusedGraph


@dataclass(frozen=True)
class Build:
    """A compiled model with its parsed log. ``graph`` is None where the toolkit wrote none."""

    compiled: Compiled
    log: BuildLog
    graph: FusedGraph | None


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
def build_of(platform: str, name: str) -> Build:
    """``name`` of pytest_rknpu.models, compiled for a toolkit platform as the suites load it.

    ToolkitError: the toolkit is missing or fails, or its log has a layout that is not known. ModelError.
    """
    from pytest_rknpu.toolchain import CompileOptions, compile_model

    model = models.load(name)
    options = CompileOptions(target_platform=platform, calibration=model.calibration)
    return _read(compile_model(model.float_onnx, options))


def _read(compiled: Compiled) -> Build:
    from pytest_rknpu.toolchain import parse_build_log
    from pytest_rknpu.toolchain.fused_graph import read_fused_graph

    log = parse_build_log(compiled.log.read_text(encoding="utf-8", errors="replace"))
    graph = compiled.fused_graph
    return Build(compiled, log, read_fused_graph(graph.read_bytes()) if graph else None)


def build_ahead(platform: str, names: Iterable[str]) -> None:
    """Compiles several models side by side, one process per CPU; ``build_of`` then finds them.

    A model that fails is left to the test that asks for it.
    """

    def attempt(name: str) -> None:
        with contextlib.suppress(RknpuError):
            build_of(platform, name)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(attempt, names))
