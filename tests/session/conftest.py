"""Emulated boards with open sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import BoardSession, LoadedModel, Npu, open_session
from pytest_rknpu.verdict import ItemRecord


@pytest.fixture
def board() -> Board:
    """An emulated rk3588."""
    return Board(name="desk", soc="rk3588", runtime="emulator", seed=1)


@pytest.fixture
def session(board: Board) -> Iterator[BoardSession]:
    """An open session with ``board``."""
    with open_session(board, seed=1) as opened:
        assert isinstance(opened, BoardSession)
        yield opened


@pytest.fixture
def npu(session: BoardSession) -> Npu:
    """The NPU of ``session``, as a suite's test gets it."""
    return Npu(session, ItemRecord("test", (), 7), 7)


@pytest.fixture
def pointwise(npu: Npu) -> LoadedModel:
    """The byte-exact probe model, loaded."""
    return npu.model("probe_pointwise")
