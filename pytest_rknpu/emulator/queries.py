"""rknn_query: one function per command, in a table; which SoC answers which is table 4-1 of the C API
reference.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from pytest_rknpu.agent.abi import ErrorCode, InitFlag, QuantizationType, QueryCommand, TensorMemoryFlag
from pytest_rknpu.emulator.container import Port
from pytest_rknpu.emulator.forms import Form
from pytest_rknpu.emulator.state import Context, Part, Rejected, State

_TELL_SIZES = InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE | InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY

Side = Literal["input", "output"]
FormOf = Callable[[State, Side, tuple[int, ...]], Form]
Answer = Callable[[State, Context, Any], None]


def query(state: State, handle: int, command: int, info: int, size: int) -> None:
    """rknn_query: fills the structure at ``info``, whose ``size`` must be that of the command's structure."""
    context = state.context(handle)
    found = _COMMANDS.get(command)
    missing = _NOT_ON_MINI if state.platform.is_mini else _ON_MINI_ONLY
    if found is None or command in missing:
        text = f"query command {command} is not supported on {state.platform.soc.name}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    structure, answer = found
    expected = ctypes.sizeof(state.structures[structure])
    if not info or size != expected:
        text = f"query {command} takes a {structure} of {expected} bytes, not {size} at {info:#x}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    if (
        context.has(InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY)
        and command != QueryCommand.RKNN_QUERY_MEM_SIZE
    ):
        text = "RKNN_FLAG_COLLECT_MODEL_INFO_ONLY: only RKNN_QUERY_MEM_SIZE is answered"
        raise Rejected(ErrorCode.RKNN_ERR_CTX_INVALID, text)
    answer(state, context, state.structures[structure].from_address(info))


def _counts(state: State, context: Context, info: Any) -> None:
    info.n_input, info.n_output = len(context.model.inputs), len(context.model.outputs)


def ports(context: Context, side: Side) -> tuple[Port, ...]:
    """The inputs or the outputs of a context's model."""
    return context.model.inputs if side == "input" else context.model.outputs


def _attribute(side: Side, form_of: FormOf, state: State, context: Context, info: Any) -> None:
    sides = ports(context, side)
    index = info.index
    if index >= len(sides):
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"{side} {index} of {len(sides)}")
    tensor = context.model.tensors[sides[index].tensor]
    form = form_of(state, side, tensor.shape)
    fill_attribute(info, index, sides[index].name, form)
    info.w_stride = state.hooks.reported_row(form.pitch, tensor.shape[-1])
    info.zp, info.scale = tensor.zero_point, tensor.scale


def fill_attribute(info: Any, index: int, name: str, form: Form) -> None:
    """Write a form into an ``rknn_tensor_attr``; scale and zero point apart."""
    ctypes.memset(ctypes.addressof(info), 0, ctypes.sizeof(info))
    info.index = index
    info.n_dims = len(form.dims)
    info.dims[: len(form.dims)] = form.dims
    info.name = name.encode()[:255]
    info.n_elems, info.size = form.elements, form.size
    info.fmt, info.type = int(form.fmt), int(form.dtype)
    info.qnt_type = int(QuantizationType.RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC)
    info.w_stride, info.size_with_stride = form.pitch, form.size_with_stride


def logical_form(state: State, side: Side, shape: tuple[int, ...]) -> Form:
    """NHWC for inputs, NCHW for outputs; on the mini runtime the native form (C API reference)."""
    if state.platform.is_mini:
        return native_form(state, side, shape)
    if side == "output":
        return state.layouts.nchw(shape)
    return state.layouts.nhwc(shape, padded=state.layouts.rows_padded(shape))


def native_form(state: State, side: Side, shape: tuple[int, ...]) -> Form:
    """What the NPU reads or writes."""
    return state.layouts.native_input(shape) if side == "input" else state.layouts.native_output(shape)


def nhwc_form(state: State, side: Side, shape: tuple[int, ...]) -> Form:
    """NHWC, rows padded where the NPU reads them so."""
    return state.layouts.nhwc(shape, padded=side == "input" and state.layouts.rows_padded(shape))


def _perf_detail(state: State, context: Context, info: Any) -> None:
    if not context.has(InitFlag.RKNN_FLAG_COLLECT_PERF_MASK):
        text = "RKNN_QUERY_PERF_DETAIL needs a context made with RKNN_FLAG_COLLECT_PERF_MASK"
        raise Rejected(ErrorCode.RKNN_ERR_FAIL, text)
    _require_run(context)
    rows = zip(context.model.layers, context.layer_microseconds, strict=False)
    lines = [
        f"{number:<4} {layer.operators:<24} NPU {time:>8} {layer.name}"
        for number, (layer, time) in enumerate(rows)
    ]
    text = "\n".join(["emulated", "ID   OpType                   Target Time(us) FullName", *lines, ""])
    buffer = ctypes.create_string_buffer(text.encode())
    context.kept[:] = [buffer]  # the runtime owns the text, until the next query
    info.perf_data, info.data_len = ctypes.addressof(buffer), len(text.encode())


def _perf_run(state: State, context: Context, info: Any) -> None:
    info.run_duration = _require_run(context)


def _require_run(context: Context) -> int:
    if context.run_microseconds is None:
        raise Rejected(ErrorCode.RKNN_ERR_FAIL, "performance is known after rknn_run only")
    return context.run_microseconds


def _versions(state: State, context: Context, info: Any) -> None:
    info.api_version = f"emulated {state.platform.runtime_version}".encode()
    info.drv_version = f"emulated {state.platform.driver_version}".encode()


def _memory_size(state: State, context: Context, info: Any) -> None:
    if not state.hooks.reports_sizes_without_flag and not context.flags & _TELL_SIZES:
        text = "RKNN_QUERY_MEM_SIZE needs a context made with RKNN_FLAG_MEM_ALLOC_OUTSIDE"
        raise Rejected(ErrorCode.RKNN_ERR_FAIL, text)
    ctypes.memset(ctypes.addressof(info), 0, ctypes.sizeof(info))
    info.total_weight_size = context.model.weight_size
    info.total_internal_size = state.hooks.reported_internal(context.model.internal_size)
    info.total_dma_allocated_size = state.dma_bytes()
    if context.has(InitFlag.RKNN_FLAG_ENABLE_SRAM):
        total = state.platform.soc.sram_bytes or 0
        info.total_sram_size = total
        info.free_sram_size = total - min(total, context.model.internal_size)


def _custom_string(state: State, context: Context, info: Any) -> None:
    info.string = context.model.custom_string.encode()


def _device_memory(state: State, context: Context, info: Any) -> None:
    """The memory that the model lies in; made at the first question."""
    if not context.device_memory:
        storage = state.shared_storage(max(len(context.model.blob), 1), coherent=True)
        storage.cpu[: len(context.model.blob)] = bytearray(context.model.blob)
        state.hold(context, storage)
        context.device_memory = [Part(storage, 0, len(context.model.blob))]
    part = context.device_memory[0]
    info.virt_addr, info.fd, info.offset = part.storage.pages.address, part.storage.pages.fd, 0
    info.phys_addr = part.storage.number * 0x1_0000_0000
    info.size, info.flags = part.size, int(TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE)


_ATTR = "rknn_tensor_attr"
_COMMANDS: Mapping[int, tuple[str, Answer]] = {
    QueryCommand.RKNN_QUERY_IN_OUT_NUM: ("rknn_input_output_num", _counts),
    QueryCommand.RKNN_QUERY_INPUT_ATTR: (_ATTR, partial(_attribute, "input", logical_form)),
    QueryCommand.RKNN_QUERY_OUTPUT_ATTR: (_ATTR, partial(_attribute, "output", logical_form)),
    QueryCommand.RKNN_QUERY_PERF_DETAIL: ("rknn_perf_detail", _perf_detail),
    QueryCommand.RKNN_QUERY_PERF_RUN: ("rknn_perf_run", _perf_run),
    QueryCommand.RKNN_QUERY_SDK_VERSION: ("rknn_sdk_version", _versions),
    QueryCommand.RKNN_QUERY_MEM_SIZE: ("rknn_mem_size", _memory_size),
    QueryCommand.RKNN_QUERY_CUSTOM_STRING: ("rknn_custom_string", _custom_string),
    QueryCommand.RKNN_QUERY_NATIVE_INPUT_ATTR: (_ATTR, partial(_attribute, "input", native_form)),
    QueryCommand.RKNN_QUERY_NATIVE_OUTPUT_ATTR: (_ATTR, partial(_attribute, "output", native_form)),
    QueryCommand.RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR: (_ATTR, partial(_attribute, "input", nhwc_form)),
    QueryCommand.RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR: (_ATTR, partial(_attribute, "output", nhwc_form)),
    QueryCommand.RKNN_QUERY_DEVICE_MEM_INFO: ("rknn_tensor_mem", _device_memory),
    QueryCommand.RKNN_QUERY_CURRENT_INPUT_ATTR: (_ATTR, partial(_attribute, "input", logical_form)),
    QueryCommand.RKNN_QUERY_CURRENT_OUTPUT_ATTR: (_ATTR, partial(_attribute, "output", logical_form)),
    QueryCommand.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR: (_ATTR, partial(_attribute, "input", native_form)),
    QueryCommand.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR: (_ATTR, partial(_attribute, "output", native_form)),
}
"""RKNN_QUERY_INPUT_DYNAMIC_RANGE is missing: no emulated model has several shapes."""

# Table 4-1 of the C API reference.
_ON_MINI_ONLY = frozenset({QueryCommand.RKNN_QUERY_DEVICE_MEM_INFO})
_NOT_ON_MINI = frozenset(
    {
        QueryCommand.RKNN_QUERY_PERF_DETAIL,
        QueryCommand.RKNN_QUERY_PERF_RUN,
        QueryCommand.RKNN_QUERY_CURRENT_INPUT_ATTR,
        QueryCommand.RKNN_QUERY_CURRENT_OUTPUT_ATTR,
        QueryCommand.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR,
        QueryCommand.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR,
    }
)
