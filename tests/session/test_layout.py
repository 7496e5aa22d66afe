"""Layouts: what is written to native memory is read back, and padding stays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.errors import HarnessError
from pytest_rknpu.session.description import TensorDescription
from pytest_rknpu.session.layout import from_memory, row_pixels, to_memory
from pytest_rknpu.session.zero_copy import significant_bytes


def attr(fmt: int, shape: tuple[int, int, int], atom: int, stride: int, dtype: int) -> dict[str, Any]:
    channels, height, width = shape
    pixels = stride or width
    size = {
        Format.RKNN_TENSOR_NC1HWC2: -(-channels // atom) * height * pixels * atom,
        Format.RKNN_TENSOR_NHWC: height * pixels * channels,
        Format.RKNN_TENSOR_NCHW: channels * height * pixels,
    }[Format(fmt)]
    dims = {
        Format.RKNN_TENSOR_NC1HWC2: [1, -(-channels // atom), height, width, atom],
        Format.RKNN_TENSOR_NHWC: [1, height, width, channels],
        Format.RKNN_TENSOR_NCHW: [1, channels, height, width],
    }[Format(fmt)]
    bytes_each = 4 if dtype == Type.RKNN_TENSOR_FLOAT32 else 1
    return {
        "name": "t",
        "fmt": fmt,
        "dims": dims,
        "type": dtype,
        "w_stride": stride,
        "size_with_stride": size * bytes_each,
    }


@given(
    fmt=st.sampled_from([Format.RKNN_TENSOR_NC1HWC2, Format.RKNN_TENSOR_NHWC, Format.RKNN_TENSOR_NCHW]),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 9)),
    atom=st.sampled_from([4, 8, 16]),
    extra=st.integers(0, 7),
    dtype=st.sampled_from([Type.RKNN_TENSOR_INT8, Type.RKNN_TENSOR_UINT8, Type.RKNN_TENSOR_FLOAT32]),
)
def test_memory_round_trip(fmt: int, shape: tuple[int, int, int], atom: int, extra: int, dtype: int) -> None:
    stride = shape[2] + extra if extra else 0
    description = attr(fmt, shape, atom, stride, dtype)
    tensor = (np.arange(np.prod(shape)) % 120).astype(
        {Type.RKNN_TENSOR_INT8: "int8", Type.RKNN_TENSOR_UINT8: "uint8"}.get(Type(dtype), "float32")
    )
    tensor = tensor.reshape(1, *shape)
    memory = to_memory(tensor, description)
    assert len(memory) == description["size_with_stride"]
    np.testing.assert_array_equal(from_memory(memory, description, tensor.shape), tensor)


def test_nc1hwc2_order_is_channels_last_within_a_group() -> None:
    description = attr(Format.RKNN_TENSOR_NC1HWC2, (3, 1, 2), 2, 0, Type.RKNN_TENSOR_INT8)
    tensor = np.array([[[[1, 2]], [[3, 4]], [[5, 6]]]], np.int8)
    assert to_memory(tensor, description) == bytes([1, 3, 2, 4, 5, 0, 6, 0])


def test_rows_are_padded_to_the_stride() -> None:
    description = attr(Format.RKNN_TENSOR_NHWC, (1, 2, 2), 1, 4, Type.RKNN_TENSOR_UINT8)
    tensor = np.array([[[[1, 2], [3, 4]]]], np.uint8)
    assert to_memory(tensor, description) == bytes([1, 2, 0, 0, 3, 4, 0, 0])
    assert row_pixels({"w_stride": 0}, 7) == 7


def test_a_wrong_dtype_is_the_harness_fault() -> None:
    description = attr(Format.RKNN_TENSOR_NCHW, (1, 1, 1), 1, 0, Type.RKNN_TENSOR_INT8)
    with pytest.raises(HarnessError, match="holds int8, not float32"):
        to_memory(np.zeros((1, 1, 1, 1), np.float32), description)


def described(shape: tuple[int, ...], native: dict[str, Any]) -> TensorDescription:
    return TensorDescription(0, native, {**native, "size": native["size_with_stride"]}, shape)


def test_the_mask_of_a_padded_tensor_leaves_out_padding_only() -> None:
    native = attr(Format.RKNN_TENSOR_NC1HWC2, (3, 1, 2), 4, 3, Type.RKNN_TENSOR_INT8)
    mask = significant_bytes(described((1, 3, 1, 2), native))
    assert mask == b"\xff\xff\xff\x00" * 2 + bytes(4)


def test_a_tensor_without_padding_has_no_mask() -> None:
    native = attr(Format.RKNN_TENSOR_NC1HWC2, (8, 2, 2), 4, 0, Type.RKNN_TENSOR_INT8)
    assert significant_bytes(described((1, 8, 2, 2), native)) is None


def test_a_vector_in_a_wider_native_form_is_masked_behind_its_end() -> None:
    native = attr(Format.RKNN_TENSOR_NC1HWC2, (10, 1, 1), 16, 0, Type.RKNN_TENSOR_INT8)
    assert significant_bytes(described((1, 10), native)) == b"\xff" * 10 + bytes(6)
