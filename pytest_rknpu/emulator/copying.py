"""The general API: rknn_inputs_set, rknn_outputs_get, rknn_outputs_release.

Its buffers are the runtime's own and not cached, so that they need no cache maintenance: whatever is wrong
with the latter, this API shows what the NPU computes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from pytest_rknpu.agent.abi import ErrorCode, InitFlag, TensorFormat, TensorType
from pytest_rknpu.emulator.forms import DTYPES, Bytes, Form, load, shown, store
from pytest_rknpu.emulator.state import Binding, Context, Part, Rejected, State

_INPUT_TYPES = frozenset(
    {
        TensorType.RKNN_TENSOR_INT8,
        TensorType.RKNN_TENSOR_UINT8,
        TensorType.RKNN_TENSOR_FLOAT32,
        TensorType.RKNN_TENSOR_FLOAT16,
    }
)


def inputs_set(state: State, handle: int, count: int, inputs: int) -> None:
    """rknn_inputs_set: copies, and converts unless pass_through; illegal with the input flush disabled."""
    context = state.context(handle)
    _require_general_api(context, InitFlag.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, context.inputs)
    if not inputs or not 0 < count <= len(context.model.inputs):
        text = f"{count} inputs for a model of {len(context.model.inputs)}"
        raise Rejected(ErrorCode.RKNN_ERR_INPUT_INVALID, text)
    for given in (state.structures["rknn_input"] * count).from_address(inputs):
        if given.index >= len(context.model.inputs):
            text = f"input {given.index} of {len(context.model.inputs)}"
            raise Rejected(ErrorCode.RKNN_ERR_INPUT_INVALID, text)
        if not given.buf:
            raise Rejected(ErrorCode.RKNN_ERR_INPUT_INVALID, f"the buffer of input {given.index} is NULL")
        data = _native_bytes(state, context, given)
        # Only now: an input that was refused is not set.
        _own_input(state, context, given.index).part.write(0, data)


def _require_general_api(context: Context, forbidding: InitFlag, bindings: list[Binding | None]) -> None:
    if context.has(forbidding):
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"illegal together with {forbidding.name}")
    if any(binding is not None and binding.memory is not None for binding in bindings):
        text = "the context uses rknn_set_io_mem; the two families of calls cannot be mixed"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)


def _own_input(state: State, context: Context, index: int) -> Binding:
    """The runtime's own memory for an input, made at the first use."""
    binding = context.inputs[index]
    if binding is None:
        form = state.layouts.native_input(context.model.tensors[context.model.inputs[index].tensor].shape)
        storage = state.private_storage(form.size_with_stride)
        state.hold(context, storage)
        binding = context.inputs[index] = Binding(Part(storage, 0, form.size_with_stride), form, None)
    return binding


def _native_bytes(state: State, context: Context, given: Any) -> Bytes:
    """What the NPU is to read for an ``rknn_input``."""
    tensor = context.model.tensors[context.model.inputs[given.index].tensor]
    native = state.layouts.native_input(tensor.shape)
    if given.pass_through:
        raw = _given_bytes(state, given, native.size, native.size_with_stride)
        tight = len(raw) == native.size != native.size_with_stride
        if not tight:
            return raw
        return store(load(raw, Form(native.fmt, native.dtype, native.dims), tensor), native, tensor)
    form = _given_form(state, given, tensor.shape)
    raw = _given_bytes(state, given, form.size)
    return store(load(raw, form, tensor), state.hooks.copying_form(native), tensor)


def _given_form(state: State, given: Any, shape: tuple[int, ...]) -> Form:
    if given.type not in _INPUT_TYPES:
        raise Rejected(
            ErrorCode.RKNN_ERR_INPUT_INVALID, f"input {given.index} cannot be of type {given.type}"
        )
    if given.fmt == TensorFormat.RKNN_TENSOR_NHWC:
        return state.layouts.nhwc(shape).with_type(TensorType(given.type))
    if given.fmt in {TensorFormat.RKNN_TENSOR_NCHW, TensorFormat.RKNN_TENSOR_UNDEFINED}:
        return state.layouts.nchw(shape).with_type(TensorType(given.type))
    raise Rejected(ErrorCode.RKNN_ERR_INPUT_INVALID, f"input {given.index} cannot have format {given.fmt}")


def _given_bytes(state: State, given: Any, *sizes: int) -> Bytes:
    """The caller's buffer, of one of ``sizes``; where nobody checks, zeros stand in for the rest."""
    raw = np.frombuffer(ctypes.string_at(given.buf, given.size), np.uint8)
    if given.size in sizes:
        return raw
    if not state.hooks.checks_input_sizes:
        return np.resize(np.append(raw[: sizes[0]], np.zeros(sizes[0], np.uint8)), sizes[0])
    expected = " or ".join(str(size) for size in sorted({*sizes}))
    text = f"input {given.index} takes {expected} bytes, not {given.size}"
    raise Rejected(ErrorCode.RKNN_ERR_INPUT_INVALID, text)


def outputs_get(state: State, handle: int, count: int, outputs: int, extend: int) -> None:
    """rknn_outputs_get: int8 or float32, in NCHW; into the caller's buffer or one of the runtime's."""
    context = state.context(handle)
    _require_general_api(context, InitFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE, context.outputs)
    if not outputs or not 0 < count <= len(context.model.outputs):
        text = f"{count} outputs of a model of {len(context.model.outputs)}"
        raise Rejected(ErrorCode.RKNN_ERR_OUTPUT_INVALID, text)
    if not context.runs:
        raise Rejected(ErrorCode.RKNN_ERR_OUTPUT_INVALID, "there are no outputs before rknn_run")
    for wanted in (state.structures["rknn_output"] * count).from_address(outputs):
        if wanted.index >= len(context.model.outputs):
            text = f"output {wanted.index} of {len(context.model.outputs)}"
            raise Rejected(ErrorCode.RKNN_ERR_OUTPUT_INVALID, text)
        _hand_out(context, wanted, _output_bytes(context, wanted))


def _output_bytes(context: Context, wanted: Any) -> bytes:
    binding = context.outputs[wanted.index]
    if binding is None:
        raise Rejected(ErrorCode.RKNN_ERR_OUTPUT_INVALID, "there are no outputs before rknn_run")
    tensor = context.model.tensors[context.model.outputs[wanted.index].tensor]
    values = load(binding.part.read(0, binding.form.size_with_stride), binding.form, tensor)
    dtype = TensorType.RKNN_TENSOR_FLOAT32 if wanted.want_float else TensorType.RKNN_TENSOR_INT8
    return shown(values, dtype, tensor).astype(DTYPES[dtype], copy=False).tobytes()


def _hand_out(context: Context, wanted: Any, data: bytes) -> None:
    if wanted.is_prealloc:
        if not wanted.buf or wanted.size < len(data):
            has = f"the buffer at {wanted.buf:#x} has {wanted.size}"
            text = f"output {wanted.index} takes {len(data)} bytes, {has}"
            raise Rejected(ErrorCode.RKNN_ERR_OUTPUT_INVALID, text)
        ctypes.memmove(wanted.buf, data, len(data))
    else:
        buffer = ctypes.create_string_buffer(data, len(data))
        wanted.buf = ctypes.addressof(buffer)
        context.output_buffers[wanted.buf] = buffer
    wanted.size = len(data)


def outputs_release(state: State, handle: int, count: int, outputs: int) -> None:
    """rknn_outputs_release: frees what rknn_outputs_get allocated."""
    context = state.context(handle)
    if not outputs or not 0 < count <= len(context.model.outputs):
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"{count} outputs at {outputs:#x}")
    for wanted in (state.structures["rknn_output"] * count).from_address(outputs):
        if not wanted.is_prealloc and context.output_buffers.pop(wanted.buf, None) is None:
            text = f"the buffer of output {wanted.index} is not one that rknn_outputs_get allocated"
            raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
