"""What the SYNC tests share: a byte-exact probe model and the control that measures sensitivity."""

from __future__ import annotations

import pytest

from pytest_rknpu.session import LoadedModel, Npu, Sensitivity, measure_sensitivity


@pytest.fixture
def model(npu: Npu) -> LoadedModel:
    """Copies each input byte to exactly one output byte, so that every cache line has its own image."""
    return npu.model("probe_pointwise")


@pytest.fixture
def sensitivity(npu: Npu, model: LoadedModel) -> Sensitivity:
    """Control of this board with the flags (F) set, measured for this test."""
    return measure_sensitivity(npu, model)
