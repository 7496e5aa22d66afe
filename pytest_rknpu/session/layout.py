"""Tensor layouts between host arrays and native memory (guide "zero copy", RKNN_QUERY_NATIVE_*_ATTR).

Attributes are dicts with the fields of ``rknn_tensor_attr`` as a query returned them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.agent.abi import rknn_tensor_format as Format
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.errors import HarnessError
from pytest_rknpu.measure import MemoryLayout

Attr = Mapping[str, Any]
Array = npt.NDArray[Any]

_DTYPES: Mapping[int, str] = {
    Type.RKNN_TENSOR_FLOAT32: "float32",
    Type.RKNN_TENSOR_FLOAT16: "float16",
    Type.RKNN_TENSOR_INT8: "int8",
    Type.RKNN_TENSOR_UINT8: "uint8",
    Type.RKNN_TENSOR_INT16: "int16",
    Type.RKNN_TENSOR_UINT16: "uint16",
    Type.RKNN_TENSOR_INT32: "int32",
    Type.RKNN_TENSOR_INT64: "int64",
}


def dtype_of(attr: Attr) -> np.dtype[Any]:
    """The numpy dtype of an attribute's ``type``."""
    try:
        return np.dtype(_DTYPES[attr["type"]])
    except KeyError:
        raise HarnessError(
            f"tensor type {attr['type']} of {attr['name']!r} has no numpy dtype here"
        ) from None


def row_pixels(attr: Attr, width: int) -> int:
    """Pixels per row in memory: ``w_stride``, or the width where it is 0 (not strided)."""
    return int(attr["w_stride"]) or width


def memory_layout(attr: Attr, shape: tuple[int, ...]) -> MemoryLayout:
    """How a tensor of the logical NCHW ``shape`` lies in memory, for saying where a difference is.

    NHWC and NCHW are NC1HWC2 whose C2 is all channels, or one. A shape that has not four dimensions is taken
    in memory order.
    """
    bytes_each = dtype_of(attr).itemsize
    if len(shape) != 4:
        return MemoryLayout(1, bytes_each)
    atom = 1
    if attr["fmt"] == Format.RKNN_TENSOR_NC1HWC2:
        atom = int(attr["dims"][-1])
    elif attr["fmt"] == Format.RKNN_TENSOR_NHWC:
        atom = shape[1]
    return MemoryLayout(atom, bytes_each, row_pixels(attr, shape[3]))


def to_memory(nchw: Array, attr: Attr) -> bytes:
    """Bytes of memory of size ``size_with_stride`` for one tensor.

    ``nchw`` has shape (1, C, H, W) and the attribute's dtype; padding (rows, channels) is zero.
    """
    if nchw.dtype != dtype_of(attr):
        raise HarnessError(f"{attr['name']!r} holds {dtype_of(attr)}, not {nchw.dtype}")
    view, memory = _strided(attr, (1, *nchw.shape[1:]))
    if attr["fmt"] == Format.RKNN_TENSOR_NC1HWC2:
        _, c1, _, _, c2 = attr["dims"]
        padded = np.zeros((1, c1 * c2, *nchw.shape[2:]), nchw.dtype)
        padded[:, : nchw.shape[1]] = nchw
        view[...] = padded.reshape(1, c1, c2, *nchw.shape[2:]).transpose(0, 1, 3, 4, 2)
    elif attr["fmt"] == Format.RKNN_TENSOR_NHWC:
        view[...] = nchw.transpose(0, 2, 3, 1)
    else:
        view[...] = nchw
    return memory.tobytes()


def from_memory(data: bytes, attr: Attr, shape: tuple[int, ...]) -> Array:
    """The (1, C, H, W) array that ``data`` holds; padding is left out.

    ``shape`` is the logical NCHW shape; a shape that is not four-dimensional is taken in memory order.
    """
    if len(shape) != 4:
        count = int(np.prod(shape))
        return np.frombuffer(data, dtype_of(attr), count).reshape(shape).copy()
    view, memory = _strided(attr, shape)
    flat = np.frombuffer(data, memory.dtype)
    memory[: flat.size] = flat[: memory.size]
    if attr["fmt"] == Format.RKNN_TENSOR_NC1HWC2:
        _, c1, _, _, c2 = attr["dims"]
        channels_first = view.transpose(0, 1, 4, 2, 3).reshape(1, c1 * c2, *shape[2:])
        return channels_first[:, : shape[1]].copy()
    if attr["fmt"] == Format.RKNN_TENSOR_NHWC:
        return view.transpose(0, 3, 1, 2).copy()
    return view.copy()


def _strided(attr: Attr, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """A view without padding over fresh memory with it: (view, memory as a flat array)."""
    _, channels, height, width = shape
    pixels = row_pixels(attr, width)
    dtype = dtype_of(attr)
    if attr["fmt"] == Format.RKNN_TENSOR_NC1HWC2:
        _, c1, _, _, c2 = attr["dims"]
        full: tuple[int, ...] = (1, c1, height, pixels, c2)
        window: tuple[Any, ...] = (slice(None), slice(None), slice(None), slice(0, width))
    elif attr["fmt"] == Format.RKNN_TENSOR_NHWC:
        full, window = (1, height, pixels, channels), (slice(None), slice(None), slice(0, width))
    else:
        full, window = (1, channels, height, pixels), (..., slice(0, width))
    memory = np.zeros(max(int(np.prod(full)), int(attr["size_with_stride"]) // dtype.itemsize), dtype)
    return memory[: int(np.prod(full))].reshape(full)[window], memory
