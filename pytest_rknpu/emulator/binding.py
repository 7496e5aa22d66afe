"""rknn_set_io_mem: which tensor an attribute means, and in which form its memory holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rknpu.agent.abi import ErrorCode, TensorFormat, TensorType
from pytest_rknpu.emulator.forms import Form
from pytest_rknpu.emulator.queries import Side, ports
from pytest_rknpu.emulator.state import Binding, Context, Rejected, State

_INT8, _UINT8 = TensorType.RKNN_TENSOR_INT8, TensorType.RKNN_TENSOR_UINT8
_FLOATS = frozenset({TensorType.RKNN_TENSOR_FLOAT32, TensorType.RKNN_TENSOR_FLOAT16})
_NHWC, _BLOCKS = TensorFormat.RKNN_TENSOR_NHWC, TensorFormat.RKNN_TENSOR_NC1HWC2

# What an element may be, by side and mini runtime (guide 1.5.2; E: the mini runtime converts nothing but
# uint8 inputs).
_TYPES: Mapping[tuple[Side, bool], frozenset[int]] = {
    ("input", False): frozenset({_INT8, _UINT8, *_FLOATS}),
    ("output", False): frozenset({_INT8, *_FLOATS}),
    ("input", True): frozenset({_INT8, _UINT8}),
    ("output", True): frozenset({_INT8}),
}
_INVALID: Mapping[Side, ErrorCode] = {
    "input": ErrorCode.RKNN_ERR_INPUT_INVALID,
    "output": ErrorCode.RKNN_ERR_OUTPUT_INVALID,
}


def set_io_mem(state: State, handle: int, address: int, attribute: int) -> None:
    """rknn_set_io_mem. ``type``, ``fmt``, ``size`` and ``pass_through`` of the attribute say what the
    memory holds.
    """
    context = state.context(handle)
    memory = state.memory_for(handle, address)
    if not attribute:
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, "the attribute is NULL")
    attr = state.structures["rknn_tensor_attr"].from_address(attribute)
    side, index = _named(context, attr)
    form = _form(state, side, attr, context.model.tensors[ports(context, side)[index].tensor].shape)
    if memory.part.size < form.size_with_stride:
        text = f"{side} {index} takes {form.size_with_stride} bytes, the memory has {memory.part.size}"
        raise Rejected(_INVALID[side], text)
    bindings = context.inputs if side == "input" else context.outputs
    bindings[index] = Binding(memory.part, form, memory)


def _named(context: Context, attr: Any) -> tuple[Side, int]:
    """Input or output, and which; indexes of both overlap, so that the name decides."""
    name, index = attr.name.decode(errors="replace"), attr.index
    sides: tuple[Side, ...] = ("input", "output")
    for side in sides:
        names = [port.name for port in ports(context, side)]
        if name in names:
            if index < len(names) and names[index] == name:
                return side, index
            raise Rejected(_INVALID[side], f"index {index} is not that of {side} {name!r}")
    raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"no input or output is called {name!r}")


def _form(state: State, side: Side, attr: Any, shape: tuple[int, ...]) -> Form:
    layouts = state.layouts
    if side == "input" and attr.pass_through:
        return layouts.native_input(shape)
    if attr.type not in _TYPES[side, state.platform.is_mini]:
        raise Rejected(_INVALID[side], f"{side} memory cannot hold elements of type {attr.type}")
    dtype = TensorType(attr.type)
    native = layouts.native_input(shape) if side == "input" else layouts.native_output(shape)
    if attr.fmt == native.fmt and dtype == _INT8:
        return native
    if attr.fmt == _BLOCKS:
        raise Rejected(_INVALID[side], f"this {side} has no NC1HWC2 form with elements of type {attr.type}")
    if attr.fmt == _NHWC:
        if side == "input" and native.fmt != _NHWC and not state.hooks.converts_pixels_for_all_channels:
            raise Rejected(_INVALID[side], "pixels are taken for 1, 3 and 4 channels only")
        padded = side == "input" and layouts.rows_padded(shape)
        return layouts.nhwc(shape, padded=padded).with_type(dtype)
    if attr.fmt != layouts.nchw(shape).fmt or state.platform.is_mini:
        raise Rejected(_INVALID[side], f"{side} memory cannot have format {attr.fmt} here")
    return layouts.nchw(shape).with_type(dtype)
