"""What the MEM tests share."""

from __future__ import annotations

import pytest

from pytest_rknpu.session import LoadedModel, Npu


@pytest.fixture
def chain(npu: Npu) -> LoadedModel:
    """Several layers with a residual connection: its internal buffer is reused between layers."""
    return npu.model("probe_chain")


@pytest.fixture
def wide(npu: Npu) -> LoadedModel:
    """Another network with a clearly larger internal buffer."""
    return npu.model("probe_wide")
