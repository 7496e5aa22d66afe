"""What the SPARSE tests share: the compiler's build log on simulator boards, scores that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.fixtures import Inference, LiveBoard
from pytest_rknpu.session import UserModels
from pytest_rknpu.toolchain import CompileOptions, Plan, compile_model, parse_build_log

Floats = NDArray[np.float32]


@pytest.fixture
def plan_of(board: LiveBoard) -> Callable[..., Plan]:
    """``plan_of(onnx, calibration, sparse_infer=True)``: the plan of a build for the board's SoC.

    ``calibration`` None leaves the model in float16. For tests that are marked ``runtimes("simulator")``.
    """
    platform = board.session.soc.toolkit_platform

    def plan(onnx: bytes, calibration: Floats | None, *, sparse_infer: bool = True) -> Plan:
        options = CompileOptions(platform, calibration, sparse_infer=sparse_infer)
        log = compile_model(onnx, options).log
        return parse_build_log(log.read_text(encoding="utf-8", errors="replace")).plan

    return plan


@pytest.fixture
def toolkit(board: LiveBoard) -> str:
    """The version of RKNN-Toolkit2, ``2.5.0`` say."""
    return board.session.versions["toolkit"]


@pytest.fixture
def pruned_name(model_name: str, user_models: UserModels) -> str:
    """The name of a sparse classifier, or of a model of boards.toml that its owner says was pruned."""
    own = user_models.get(model_name)
    if own is not None and own.table.sparse is None:
        pytest.skip(f'[[model]] "{model_name}" declares no sparse mode')
    return model_name


@pytest.fixture(scope="session")
def known_scores() -> dict[Any, Floats]:
    """Scores by board, model and sparse_infer."""
    return {}


@pytest.fixture
def scores(board: LiveBoard, inference: Inference, known_scores: dict[Any, Floats]) -> Callable[..., Floats]:
    """``scores(model name, count, sparse_infer=True)``: (count, classes), of the first held-out samples."""

    def of(name: str, count: int, *, sparse_infer: bool = True) -> Floats:
        key = (board.board.name, name, sparse_infer)
        if key not in known_scores or len(known_scores[key]) < count:
            inputs = models.load_labelled(name).inputs[:count]
            known_scores[key] = inference(models.load(name), inputs, sparse_infer=sparse_infer)[0]
        return known_scores[key][:count]

    return of
