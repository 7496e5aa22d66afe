"""How a tensor lies in memory: native, NHWC or logical, in which element type, with which padding.

Native is what the NPU itself reads and writes (RKNN_QUERY_NATIVE_*_ATTR): int8, NC1HWC2 with the SoC's C2,
or NHWC with padded rows for inputs of 1, 3 or 4 channels. Tensors that have not four dimensions have no
channel blocks: on librknnrt they lie in their own order (UNDEFINED), on the mini runtime as NC1HWC2 of
height and width 1.

Stored values are converted as ONNX does: round half to even of real / scale, plus the zero point,
saturated. uint8 and float elements are real values; int8 ones are stored values already.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pytest_rknpu.agent.abi import TensorFormat, TensorType
from pytest_rknpu.emulator.container import Tensor

Int8 = npt.NDArray[np.int8]
Bytes = npt.NDArray[np.uint8]

DTYPES: Mapping[int, np.dtype[np.generic]] = {
    TensorType.RKNN_TENSOR_FLOAT32: np.dtype(np.float32),
    TensorType.RKNN_TENSOR_FLOAT16: np.dtype(np.float16),
    TensorType.RKNN_TENSOR_INT8: np.dtype(np.int8),
    TensorType.RKNN_TENSOR_UINT8: np.dtype(np.uint8),
}
_NHWC_CHANNELS = frozenset({1, 3, 4})


@dataclass(frozen=True)
class Form:
    """One way to lie in memory. ``dims`` in the order of ``fmt``; ``pitch`` is pixels per row (0: as wide
    as the rows).
    """

    fmt: TensorFormat
    dtype: TensorType
    dims: tuple[int, ...]
    pitch: int = 0

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype].itemsize

    @property
    def elements(self) -> int:
        """Elements, channel blocks filled up, rows not."""
        return math.prod(self.dims)

    @property
    def size(self) -> int:
        """Bytes without the padding of rows (``rknn_tensor_attr.size``)."""
        return self.elements * self.itemsize

    @property
    def padded_dims(self) -> tuple[int, ...]:
        """``dims`` with the width replaced by the pitch."""
        if not self.pitch:
            return self.dims
        axis = _WIDTH_AXIS[self.fmt]
        return (*self.dims[:axis], self.pitch, *self.dims[axis + 1 :])

    @property
    def size_with_stride(self) -> int:
        """Bytes with the padding of rows: what a memory of this form needs."""
        return math.prod(self.padded_dims) * self.itemsize

    def with_type(self, dtype: TensorType) -> Form:
        """The same form with other elements."""
        return replace(self, dtype=dtype)


_WIDTH_AXIS = {
    TensorFormat.RKNN_TENSOR_NCHW: 3,
    TensorFormat.RKNN_TENSOR_NHWC: 2,
    TensorFormat.RKNN_TENSOR_NC1HWC2: 3,
}


@dataclass(frozen=True)
class Layouts:
    """The forms that one SoC offers for a tensor. ``atom`` in channels, ``width_alignment`` in pixels."""

    atom: int
    width_alignment: int
    blocks_for_all: bool
    """Whether tensors that have not four dimensions are in channel blocks too (mini runtime)."""

    def nchw(self, shape: tuple[int, ...]) -> Form:
        """The logical form, int8; UNDEFINED where the shape has not four dimensions."""
        fmt = TensorFormat.RKNN_TENSOR_NCHW if len(shape) == 4 else TensorFormat.RKNN_TENSOR_UNDEFINED
        return Form(fmt, TensorType.RKNN_TENSOR_INT8, shape)

    def nhwc(self, shape: tuple[int, ...], *, padded: bool = False) -> Form:
        """NHWC, int8; ``padded``: with rows as the NPU reads them. Logical where there are not four
        dimensions.
        """
        if len(shape) != 4:
            return self.nchw(shape)
        batch, channels, height, width = shape
        pitch = -(-width // self.width_alignment) * self.width_alignment if padded else 0
        dims = (batch, height, width, channels)
        return Form(TensorFormat.RKNN_TENSOR_NHWC, TensorType.RKNN_TENSOR_INT8, dims, pitch)

    def blocks(self, shape: tuple[int, ...]) -> Form:
        """NC1HWC2, int8."""
        batch, channels, height, width = _four(shape)
        dims = (batch, -(-channels // self.atom), height, width, self.atom)
        return Form(TensorFormat.RKNN_TENSOR_NC1HWC2, TensorType.RKNN_TENSOR_INT8, dims)

    def native_input(self, shape: tuple[int, ...]) -> Form:
        """What the NPU reads."""
        if len(shape) == 4 and shape[1] in _NHWC_CHANNELS:
            return self.nhwc(shape, padded=True)
        return self.native_output(shape)

    def native_output(self, shape: tuple[int, ...]) -> Form:
        """What the NPU writes."""
        return self.blocks(shape) if len(shape) == 4 or self.blocks_for_all else self.nchw(shape)

    def rows_padded(self, shape: tuple[int, ...]) -> bool:
        """Whether the NPU reads this input with padded rows, whatever its elements are."""
        return self.native_input(shape).fmt == TensorFormat.RKNN_TENSOR_NHWC


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """(N, C, H, W) of any shape: what follows the batch counts as channels where there are not four
    dimensions.
    """
    if len(shape) == 4:
        return shape[0], shape[1], shape[2], shape[3]
    return 1, math.prod(shape), 1, 1


def load(memory: Bytes, form: Form, tensor: Tensor) -> Int8:
    """The stored values (int8, ``tensor.shape``) that ``memory`` holds in ``form``. It may be longer."""
    values = _window(memory, form)
    if form.fmt == TensorFormat.RKNN_TENSOR_NHWC:
        values = values.transpose(0, 3, 1, 2)
    elif form.fmt == TensorFormat.RKNN_TENSOR_NC1HWC2:
        batch, blocks, height, width, atom = form.dims
        values = values.transpose(0, 1, 4, 2, 3).reshape(batch, blocks * atom, height, width)
        values = values[:, : _four(tensor.shape)[1]]
    return stored(values, tensor).reshape(tensor.shape)


def store(values: Int8, form: Form, tensor: Tensor, padding: int = 0) -> Bytes:
    """The bytes (uint8, ``form.size_with_stride`` of them) that hold the stored ``values`` in ``form``.

    ``padding`` is the byte wherever there is no element.
    """
    memory = np.full(form.size_with_stride, padding, np.uint8)
    window = _window(memory, form)
    elements = shown(values, form.dtype, tensor)
    if form.fmt == TensorFormat.RKNN_TENSOR_NHWC:
        window[...] = elements.transpose(0, 2, 3, 1)
    elif form.fmt == TensorFormat.RKNN_TENSOR_NC1HWC2:
        batch, blocks, height, width, atom = form.dims
        filled = np.zeros((batch, blocks * atom, height, width), elements.dtype)
        filled.view(np.uint8)[...] = padding
        filled[:, : _four(tensor.shape)[1]] = elements.reshape(_four(tensor.shape))
        window[...] = filled.reshape(batch, blocks, atom, height, width).transpose(0, 1, 3, 4, 2)
    else:
        window[...] = elements.reshape(form.dims)
    return memory


def stored(values: npt.NDArray[np.generic], tensor: Tensor) -> Int8:
    """Elements as stored int8: real values are quantised, int8 ones are taken as they are."""
    if values.dtype == np.int8:
        return values.view(np.int8)
    real = values.astype(np.float32) / np.float32(tensor.scale)
    quantised: Int8 = np.clip(np.rint(real) + tensor.zero_point, -128, 127).astype(np.int8)
    return quantised


def shown(values: Int8, dtype: TensorType, tensor: Tensor) -> npt.NDArray[np.generic]:
    """Stored values as elements of ``dtype``: real values for the float types, else the stored ones."""
    if dtype == TensorType.RKNN_TENSOR_INT8:
        return values
    real = (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return real.astype(DTYPES[dtype])


def _window(memory: Bytes, form: Form) -> npt.NDArray[np.generic]:
    """The elements of ``form`` in ``memory``, without the padding of rows: a view."""
    count = math.prod(form.padded_dims)
    whole = memory[: count * form.itemsize].view(DTYPES[form.dtype]).reshape(form.padded_dims)
    if not form.pitch:
        return whole
    axis = _WIDTH_AXIS[form.fmt]
    return whole[(*(slice(None),) * axis, slice(0, form.dims[axis]))]
