"""What the ERR tests share."""

from __future__ import annotations

import pytest

from pytest_rknpu.session import LoadedModel, Npu


@pytest.fixture(autouse=True)
def _healthy_before(npu: Npu) -> None:
    """What the board must still give after bad input is asked for before it: later it proves nothing."""
    npu.require_health()


@pytest.fixture
def model(npu: Npu) -> LoadedModel:
    """Any model with one input and one output."""
    return npu.model("probe_chain")
