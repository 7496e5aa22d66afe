"""Tensor layouts: where each element lies, and that what is stored is what is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.agent.abi import TensorFormat, TensorType
from pytest_rknpu.emulator.container import Tensor
from pytest_rknpu.emulator.forms import Form, Layouts, load, store

LAYOUTS = Layouts(atom=16, width_alignment=16, blocks_for_all=False)
MINI = Layouts(atom=16, width_alignment=16, blocks_for_all=True)


def tensor(*shape: int) -> Tensor:
    return Tensor("t", shape, 1 / 32, -9, 0, int(np.prod(shape)))


def values(*shape: int, seed: int = 0) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


def position(form: Form, n: int, c: int, h: int, w: int) -> int:
    """Element number of (n, c, h, w), from the description of the layouts alone."""
    if form.fmt == TensorFormat.RKNN_TENSOR_NC1HWC2:
        _, blocks, height, width, atom = form.dims
        return (((n * blocks + c // atom) * height + h) * width + w) * atom + c % atom
    if form.fmt == TensorFormat.RKNN_TENSOR_NHWC:
        _, height, width, channels = form.dims
        return ((n * height + h) * (form.pitch or width) + w) * channels + c
    _, channels, height, width = form.dims
    return ((n * channels + c) * height + h) * width + w


shapes = st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(1, 5), st.integers(1, 20))


@given(shapes, st.sampled_from(["nchw", "nhwc", "padded", "blocks"]), st.integers(0, 100))
def test_each_element_lies_where_its_layout_says(
    shape: tuple[int, int, int, int], kind: str, seed: int
) -> None:
    made = {
        "nchw": LAYOUTS.nchw(shape),
        "nhwc": LAYOUTS.nhwc(shape),
        "padded": LAYOUTS.nhwc(shape, padded=True),
        "blocks": LAYOUTS.blocks(shape),
    }[kind]
    stored = values(*shape, seed=seed)
    memory = store(stored, made, tensor(*shape))
    assert len(memory) == made.size_with_stride
    expected = np.zeros(len(memory), np.int8)
    for index in np.ndindex(*shape):
        expected[position(made, *index)] = stored[index]
    np.testing.assert_array_equal(memory.view(np.int8), expected)
    np.testing.assert_array_equal(load(memory, made, tensor(*shape)), stored)


@pytest.mark.parametrize("dtype", [TensorType.RKNN_TENSOR_FLOAT32, TensorType.RKNN_TENSOR_FLOAT16])
def test_real_elements_survive_both_ways(dtype: TensorType) -> None:
    stored = values(1, 3, 4, 5)
    form = LAYOUTS.nhwc((1, 3, 4, 5), padded=True).with_type(dtype)
    memory = store(stored, form, tensor(1, 3, 4, 5))
    assert len(memory) == 4 * 16 * 3 * form.itemsize
    np.testing.assert_array_equal(load(memory, form, tensor(1, 3, 4, 5)), stored)


def test_unsigned_elements_are_real_values() -> None:
    form = LAYOUTS.nchw((1, 1, 1, 4)).with_type(TensorType.RKNN_TENSOR_UINT8)
    memory = np.array([0, 1, 2, 255], np.uint8)
    np.testing.assert_array_equal(load(memory, form, tensor(1, 1, 1, 4)).reshape(-1), [-9, 23, 55, 127])


def test_quantisation_rounds_half_to_even_as_onnx_does() -> None:
    form = LAYOUTS.nchw((1, 1, 1, 4)).with_type(TensorType.RKNN_TENSOR_FLOAT32)
    real = np.array([0.5, 1.5, 2.5, -0.5], np.float32) / 32
    loaded = load(real.view(np.uint8), form, tensor(1, 1, 1, 4)).reshape(-1)
    np.testing.assert_array_equal(loaded, [-9, -7, -7, -9])


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_few_channels_are_read_in_padded_rows(channels: int) -> None:
    form = LAYOUTS.native_input((1, channels, 8, 20))
    assert (form.fmt, form.dims, form.pitch) == (TensorFormat.RKNN_TENSOR_NHWC, (1, 8, 20, channels), 32)
    assert form.size == 8 * 20 * channels
    assert form.size_with_stride == 8 * 32 * channels


def test_other_inputs_and_all_outputs_are_in_blocks() -> None:
    for form in (LAYOUTS.native_input((1, 24, 8, 20)), LAYOUTS.native_output((1, 24, 8, 20))):
        assert (form.fmt, form.dims, form.pitch) == (TensorFormat.RKNN_TENSOR_NC1HWC2, (1, 2, 8, 20, 16), 0)
    assert LAYOUTS.native_output((1, 3, 8, 20)).fmt == TensorFormat.RKNN_TENSOR_NC1HWC2


def test_flat_tensors_are_in_blocks_on_the_mini_runtime_only() -> None:
    assert LAYOUTS.native_output((1, 10)) == Form(
        TensorFormat.RKNN_TENSOR_UNDEFINED, TensorType.RKNN_TENSOR_INT8, (1, 10)
    )
    assert MINI.native_output((1, 10)).dims == (1, 1, 1, 1, 16)
    memory = store(values(1, 10), MINI.native_output((1, 10)), tensor(1, 10))
    np.testing.assert_array_equal(memory.view(np.int8), [*values(1, 10).reshape(-1), *[0] * 6])
    np.testing.assert_array_equal(load(memory, MINI.native_output((1, 10)), tensor(1, 10)), values(1, 10))
