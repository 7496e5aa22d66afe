"""The file that a board loads for a model: packed for the emulator, compiled by RKNN-Toolkit2 for silicon."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_rknpu import __version__, models
from pytest_rknpu.errors import ModelError
from pytest_rknpu.inventory.socs import find_soc

if TYPE_CHECKING:
    from pytest_rknpu.inventory.schema import Board


def artifact_for(
    board: Board,
    model: str,
    *,
    soc: str | None = None,
    sparse_infer: bool = False,
    remove_weight: bool = False,
) -> bytes:
    """The bytes of ``model`` (a name of pytest_rknpu.models) for ``board``, or for another ``soc`` (ERR-01).

    ``remove_weight``: without its weights, for contexts that share another's (MEM-06).

    Raises ModelError for a missing model and ToolkitError where RKNN-Toolkit2 is needed and fails.
    """
    platform = find_soc(soc or board.soc).toolkit_platform
    if board.runtime == "emulator":
        return packed(model, platform, remove_weight=remove_weight)
    return compiled(model, platform, sparse_infer=sparse_infer, remove_weight=remove_weight)


@lru_cache(maxsize=64)
def packed(model: str, platform: str, *, remove_weight: bool = False) -> bytes:
    """``model`` as the emulator loads it."""
    from pytest_rknpu.emulator import pack

    return pack(models.load(model).qdq_onnx, platform, remove_weight=remove_weight)


@lru_cache(maxsize=64)
def compiled(model: str, platform: str, *, sparse_infer: bool = False, remove_weight: bool = False) -> bytes:
    """``model`` as RKNN-Toolkit2 builds it (int8, quantised on the calibration data shipped with it).

    Where there is no toolkit, as it was built before it was shipped, if it was.
    """
    from pytest_rknpu import prebuilt
    from pytest_rknpu.toolchain import CompileOptions, compile_model, toolkit_status

    if toolkit_status().version is None and not sparse_infer and not remove_weight:
        with contextlib.suppress(ModelError):
            return prebuilt.load(model, platform).content
    source = models.load(model)
    options = CompileOptions(
        target_platform=platform,
        calibration=source.calibration,
        sparse_infer=sparse_infer,
        config={"remove_weight": True} if remove_weight else {},
    )
    return Path(compile_model(source.float_onnx, options).path).read_bytes()


def compiler_of(board: Board) -> dict[str, str]:
    """The versions "toolkit" and "model_compiler" of what ``artifact_for`` gives this board."""
    if board.runtime == "emulator":
        return {
            "toolkit": "absent (an emulated board loads packed ONNX, nothing was compiled)",
            "model_compiler": f"emulated {__version__}",
        }
    from pytest_rknpu.prebuilt import NEWEST
    from pytest_rknpu.toolchain import toolkit_status

    status = toolkit_status()
    if status.version is None:
        return {
            "toolkit": f"absent ({status.reason})",
            "model_compiler": f"{NEWEST} (models shipped prebuilt)",
        }
    return {"toolkit": status.version, "model_compiler": status.version}


@lru_cache(maxsize=64)
def shapes_of(model: str) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """The logical shapes of a model's inputs and outputs, as its ONNX file declares them."""
    import onnx

    graph = onnx.load_model_from_string(models.load(model).qdq_onnx).graph

    def shapes(values: Iterable[Any]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(d.dim_value for d in value.type.tensor_type.shape.dim) for value in values)

    return shapes(graph.input), shapes(graph.output)
