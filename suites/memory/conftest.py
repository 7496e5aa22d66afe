"""What the MEM tests share."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.session import LoadedModel, Npu


@pytest.fixture
def chain(npu: Npu) -> LoadedModel:
    """Several layers with a residual connection: its internal buffer is reused between layers."""
    return npu.model("probe_chain")


@pytest.fixture
def wide(npu: Npu) -> LoadedModel:
    """Another network with a clearly larger internal buffer."""
    return npu.model("probe_wide")


@pytest.fixture
def named(npu: Npu, model_name: str) -> LoadedModel:
    """The model of that name, for tests that compare one input and one output byte for byte.

    A model of boards.toml with others skips.
    """
    model = npu.model(model_name)
    inputs, outputs = model.description.inputs, model.description.outputs
    int8 = all(tensor.native["type"] == Type.RKNN_TENSOR_INT8 for tensor in (*inputs, *outputs))
    if len(inputs) != 1 or len(outputs) != 1 or not int8 or len(inputs[0].shape) != 4:
        pytest.skip(f"{model_name} has other than one int8 input (N, C, H, W) and one int8 output")
    return model
