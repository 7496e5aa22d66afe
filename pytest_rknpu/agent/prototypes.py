"""The functions of the RKNN C API as a table: result and argument kinds of each (2.3.2 headers)."""

from __future__ import annotations

from ctypes import c_int, c_int32, c_uint32, c_uint64
from typing import Any, NamedTuple

from .structures import CONTEXT, POINTER, Layouts

ENUM = c_uint32


class Prototype(NamedTuple):
    """Result and argument kinds: a ctypes type, POINTER or CONTEXT. A result of None is ``void``."""

    result: Any
    arguments: tuple[Any, ...]


def _code(*arguments: Any) -> Prototype:
    return Prototype(c_int, arguments)


def _memory(*arguments: Any) -> Prototype:
    return Prototype(POINTER, arguments)


PROTOTYPES: dict[str, Prototype] = {
    "rknn_init": _code(POINTER, POINTER, c_uint32, c_uint32, POINTER),
    "rknn_dup_context": _code(POINTER, POINTER),
    "rknn_destroy": _code(CONTEXT),
    "rknn_query": _code(CONTEXT, ENUM, POINTER, c_uint32),
    "rknn_inputs_set": _code(CONTEXT, c_uint32, POINTER),
    "rknn_set_batch_core_num": _code(CONTEXT, c_int),
    "rknn_set_core_mask": _code(CONTEXT, ENUM),
    "rknn_run": _code(CONTEXT, POINTER),
    "rknn_wait": _code(CONTEXT, POINTER),
    "rknn_outputs_get": _code(CONTEXT, c_uint32, POINTER, POINTER),
    "rknn_outputs_release": _code(CONTEXT, c_uint32, POINTER),
    "rknn_create_mem": _memory(CONTEXT, c_uint32),
    "rknn_create_mem2": _memory(CONTEXT, c_uint64, c_uint64),
    "rknn_create_mem_from_fd": _memory(CONTEXT, c_int32, POINTER, c_uint32, c_int32),
    "rknn_create_mem_from_phys": _memory(CONTEXT, c_uint64, POINTER, c_uint32),
    "rknn_create_mem_from_mb_blk": _memory(CONTEXT, POINTER, c_int32),
    "rknn_destroy_mem": _code(CONTEXT, POINTER),
    "rknn_set_weight_mem": _code(CONTEXT, POINTER),
    "rknn_set_internal_mem": _code(CONTEXT, POINTER),
    "rknn_set_io_mem": _code(CONTEXT, POINTER, POINTER),
    "rknn_set_input_shape": _code(CONTEXT, POINTER),
    "rknn_set_input_shapes": _code(CONTEXT, c_uint32, POINTER),
    "rknn_mem_sync": _code(CONTEXT, POINTER, ENUM),
    "rknn_matmul_create": _code(POINTER, POINTER, POINTER),
    "rknn_matmul_create_dynamic_shape": _code(POINTER, POINTER, c_int, POINTER, POINTER),
    "rknn_matmul_set_io_mem": _code(CONTEXT, POINTER, POINTER),
    "rknn_matmul_set_core_mask": _code(CONTEXT, ENUM),
    "rknn_matmul_set_quant_params": _code(CONTEXT, POINTER),
    "rknn_matmul_get_quant_params": _code(CONTEXT, POINTER, POINTER),
    "rknn_matmul_set_dynamic_shape": _code(CONTEXT, POINTER),
    "rknn_matmul_run": _code(CONTEXT),
    "rknn_matmul_destroy": _code(CONTEXT),
    "rknn_B_normal_layout_to_native_layout": _code(POINTER, POINTER, c_int, c_int, POINTER),
    "rknn_register_custom_ops": _code(CONTEXT, POINTER, c_uint32),
    "rknn_custom_op_get_op_attr": Prototype(None, (POINTER, POINTER, POINTER)),
}
"""All functions of the three headers; which of them a library exports is found out at run time."""


def concrete(kind: Any, structures: Layouts) -> Any:
    """The ctypes type of a kind under an ABI; None stays None (``void``)."""
    if kind == POINTER:
        return structures.pointer
    if kind == CONTEXT:
        return structures.context
    return kind
