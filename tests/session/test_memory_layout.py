"""Where an element lies, told from an attribute, is where ``to_memory`` puts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.measure.localise import element_offsets
from pytest_rknpu.session.layout import memory_layout, to_memory

SHAPE = (1, 20, 3, 5)


def attribute(layout: int, stride: int, **other: Any) -> dict[str, Any]:
    known = {"name": "x", "fmt": int(layout), "type": int(Type.RKNN_TENSOR_INT16), "w_stride": stride}
    return {**known, "size_with_stride": 0, "dims": [], **other}


@pytest.mark.parametrize(
    "attr",
    [
        attribute(Format.RKNN_TENSOR_NC1HWC2, 8, dims=[1, 3, 3, 5, 8]),
        attribute(Format.RKNN_TENSOR_NC1HWC2, 0, dims=[1, 2, 3, 5, 16]),
        attribute(Format.RKNN_TENSOR_NHWC, 8),
        attribute(Format.RKNN_TENSOR_NCHW, 0),
    ],
)
def test_every_element(attr: dict[str, Any]) -> None:
    values = np.arange(1, 1 + np.prod(SHAPE), dtype=np.int16).reshape(SHAPE)
    memory = np.frombuffer(to_memory(values, attr), np.int16)
    offsets = element_offsets(SHAPE[1:], memory_layout(attr, SHAPE))
    assert np.array_equal(memory[offsets // 2], values[0])


def test_another_number_of_dimensions_is_taken_in_memory_order() -> None:
    attr = attribute(Format.RKNN_TENSOR_UNDEFINED, 0)
    offsets = element_offsets((10, 1, 1), memory_layout(attr, (1, 10)))
    assert offsets.reshape(-1).tolist() == list(range(0, 20, 2))
