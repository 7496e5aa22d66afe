"""What the SYNC tests share: a byte-exact probe model and the control that measures sensitivity."""

from __future__ import annotations

import pytest

from pytest_rknpu.session import LoadedModel, Npu, Sensitivity, measure_sensitivity


@pytest.fixture
def model(npu: Npu, request: pytest.FixtureRequest) -> LoadedModel:
    """By default the probe that copies each input byte to exactly one output byte.

    So every cache line has its own image. Tests of whole buffers take larger and padded ones too
    (``request.param``).
    """
    return npu.model(getattr(request, "param", "probe_pointwise"))


@pytest.fixture
def sensitivity(npu: Npu, request: pytest.FixtureRequest) -> Sensitivity:
    """Control of this board with the flags (F) set, measured for this test on the byte-exact probe.

    In the same kind of memory, where the test has the parameter ``alloc_flags``.
    """
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return measure_sensitivity(npu, npu.model("probe_pointwise"), parameters.get("alloc_flags"))
