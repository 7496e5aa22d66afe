"""What the ACC tests share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu.fixtures import LiveBoard
from pytest_rknpu.measure import MemoryLayout
from pytest_rknpu.session import Subject
from pytest_rknpu.session.layout import memory_layout

Floats = NDArray[np.float32]

# NC1HWC2 of int8 where no source tells the SoC's own.
USUAL_ATOM = 16


@pytest.fixture
def layouts(
    request: pytest.FixtureRequest, board: LiveBoard
) -> Callable[[Subject, list[Floats]], list[MemoryLayout]]:
    """How the outputs of a model lie in memory, one layout for each of the given outputs (ACC-07).

    As the runtime says; on boards without a C runtime as the SoC lays out int8, without padding.
    """

    def of(subject: Subject, outputs: list[Floats]) -> list[MemoryLayout]:
        if board.board.runtime in ("simulator", "connected"):
            atom = board.board.chip.feature_atom.get("int8", USUAL_ATOM)
            return [MemoryLayout(atom, 1) for _ in outputs]
        described = request.getfixturevalue("npu").model(subject.name).description
        return [memory_layout(tensor.native, tensor.shape) for tensor in described.outputs]

    return of
