"""The C structures of the RKNN API for any pointer and context width, with pointers as plain integers.

``layouts(pointer_bits, context_bits)`` builds ctypes structures whose offsets and sizes equal the vendor's
headers compiled for that ABI (64/64: aarch64, 32/32: armhf, where 64-bit members are 8-byte aligned). An
emulated mini runtime on a 64-bit host is 64/32. Because pointers are integers, both ABIs can be laid out, and
checked against a compiler's table, in one process.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_float, c_int8, c_int16, c_int32, c_int64, c_uint8, c_uint32, c_uint64
from functools import lru_cache
from typing import Any, Tuple

from .constants import (
    CUSTOM_STRING_LENGTH,
    RKNN_MAX_DIMS,
    RKNN_MAX_DYNAMIC_SHAPE_NUM,
    RKNN_MAX_NAME_LEN,
)

POINTER = "pointer"
CONTEXT = "context"

# A field's type is a ctypes type, POINTER, CONTEXT, the name of a structure above it, or (type, length).
_Field = Tuple[str, Any]

_NAME = (c_char, RKNN_MAX_NAME_LEN)
_DIMS = (c_uint32, RKNN_MAX_DIMS)

FIELDS: dict[str, list[_Field]] = {
    "rknn_input_output_num": [("n_input", c_uint32), ("n_output", c_uint32)],
    "rknn_tensor_attr": [
        ("index", c_uint32),
        ("n_dims", c_uint32),
        ("dims", _DIMS),
        ("name", _NAME),
        ("n_elems", c_uint32),
        ("size", c_uint32),
        ("fmt", c_uint32),
        ("type", c_uint32),
        ("qnt_type", c_uint32),
        ("fl", c_int8),
        ("zp", c_int32),
        ("scale", c_float),
        ("w_stride", c_uint32),
        ("size_with_stride", c_uint32),
        ("pass_through", c_uint8),
        ("h_stride", c_uint32),
    ],
    "rknn_input_range": [
        ("index", c_uint32),
        ("shape_number", c_uint32),
        ("fmt", c_uint32),
        ("name", _NAME),
        ("dyn_range", (_DIMS, RKNN_MAX_DYNAMIC_SHAPE_NUM)),
        ("n_dims", c_uint32),
    ],
    "rknn_perf_detail": [("perf_data", POINTER), ("data_len", c_uint64)],
    "rknn_perf_run": [("run_duration", c_int64)],
    "rknn_sdk_version": [("api_version", (c_char, 256)), ("drv_version", (c_char, 256))],
    "rknn_mem_size": [
        ("total_weight_size", c_uint32),
        ("total_internal_size", c_uint32),
        ("total_dma_allocated_size", c_uint64),
        ("total_sram_size", c_uint32),
        ("free_sram_size", c_uint32),
        ("reserved", (c_uint32, 10)),
    ],
    "rknn_custom_string": [("string", (c_char, CUSTOM_STRING_LENGTH))],
    "rknn_tensor_mem": [
        ("virt_addr", POINTER),
        ("phys_addr", c_uint64),
        ("fd", c_int32),
        ("offset", c_int32),
        ("size", c_uint32),
        ("flags", c_uint32),
        ("priv_data", POINTER),
    ],
    "rknn_input": [
        ("index", c_uint32),
        ("buf", POINTER),
        ("size", c_uint32),
        ("pass_through", c_uint8),
        ("type", c_uint32),
        ("fmt", c_uint32),
    ],
    "rknn_output": [
        ("want_float", c_uint8),
        ("is_prealloc", c_uint8),
        ("index", c_uint32),
        ("buf", POINTER),
        ("size", c_uint32),
    ],
    "rknn_init_extend": [
        ("ctx", CONTEXT),
        ("real_model_offset", c_int32),
        ("real_model_size", c_uint32),
        ("model_buffer_fd", c_int32),
        ("model_buffer_flags", c_uint32),
        ("reserved", (c_uint8, 112)),
    ],
    "rknn_run_extend": [
        ("frame_id", c_uint64),
        ("non_block", c_int32),
        ("timeout_ms", c_int32),
        ("fence_fd", c_int32),
    ],
    "rknn_output_extend": [("frame_id", c_uint64)],
    "rknn_quant_params": [
        ("name", _NAME),
        ("scale", POINTER),
        ("scale_len", c_int32),
        ("zp", POINTER),
        ("zp_len", c_int32),
    ],
    "rknn_matmul_tensor_attr": [
        ("name", _NAME),
        ("n_dims", c_uint32),
        ("dims", _DIMS),
        ("size", c_uint32),
        ("type", c_uint32),
    ],
    "rknn_matmul_io_attr": [
        ("A", "rknn_matmul_tensor_attr"),
        ("B", "rknn_matmul_tensor_attr"),
        ("C", "rknn_matmul_tensor_attr"),
    ],
    "rknn_matmul_shape": [("M", c_int32), ("K", c_int32), ("N", c_int32)],
    "rknn_matmul_info": [
        ("M", c_int32),
        ("K", c_int32),
        ("N", c_int32),
        ("type", c_uint32),
        ("B_layout", c_int16),
        ("B_quant_type", c_int16),
        ("AC_layout", c_int16),
        ("AC_quant_type", c_int16),
        ("iommu_domain_id", c_int32),
        ("group_size", c_int16),
        ("reserved", (c_int8, 34)),
    ],
    "rknn_gpu_op_context": [("cl_context", POINTER), ("cl_command_queue", POINTER), ("cl_kernel", POINTER)],
    "rknn_custom_op_context": [
        ("target", c_uint32),
        ("internal_ctx", CONTEXT),
        ("gpu_ctx", "rknn_gpu_op_context"),
        ("priv_data", POINTER),
    ],
    "rknn_custom_op_tensor": [("attr", "rknn_tensor_attr"), ("mem", "rknn_tensor_mem")],
    "rknn_custom_op_attr": [
        ("name", _NAME),
        ("dtype", c_uint32),
        ("n_elems", c_uint32),
        ("data", POINTER),
    ],
    "rknn_custom_op": [
        ("version", c_uint32),
        ("target", c_uint32),
        ("op_type", _NAME),
        ("cl_kernel_name", _NAME),
        ("cl_kernel_source", POINTER),
        ("cl_source_size", c_uint64),
        ("cl_build_options", _NAME),
        ("init", POINTER),
        ("prepare", POINTER),
        ("compute", POINTER),
        ("compute_native", POINTER),
        ("destroy", POINTER),
    ],
}
"""The fields of each structure of the 2.3.2 headers, in order."""

_INTEGERS: dict[int, Any] = {32: c_uint32, 64: c_uint64}


class Layouts:
    """The structures of one ABI: ``layouts(64, 64)["rknn_tensor_attr"]`` is a ctypes structure class."""

    def __init__(self, pointer_bits: int, context_bits: int) -> None:
        self.pointer_bits = pointer_bits
        self.context_bits = context_bits
        self.pointer: Any = _integer(pointer_bits)
        self.context: Any = _integer(context_bits)
        self._structures: dict[str, type[ctypes.Structure]] = {}
        for name, fields in FIELDS.items():
            members = [(field, self._resolve(kind)) for field, kind in fields]
            self._structures[name] = type(name, (ctypes.Structure,), {"_fields_": members})

    def __getitem__(self, name: str) -> Any:
        # The fields of a structure made at run time are unknown to a type checker, hence Any.
        return self._structures[name]

    def names(self) -> list[str]:
        """The names of all structures, in the order of the headers."""
        return list(self._structures)

    def _resolve(self, kind: Any) -> Any:
        if kind == POINTER:
            return self.pointer
        if kind == CONTEXT:
            return self.context
        if isinstance(kind, str):
            return self._structures[kind]
        if isinstance(kind, tuple):
            element, length = kind
            return self._resolve(element) * length
        return kind


def _integer(bits: int) -> Any:
    if bits not in (32, 64):
        raise ValueError(f"a pointer or context is 32 or 64 bits wide, not {bits}")
    return _INTEGERS[bits]


@lru_cache(maxsize=None)
def layouts(pointer_bits: int, context_bits: int) -> Layouts:
    """The structures for these widths in bits of a pointer and of ``rknn_context``: 32 or 64.

    Raises ``ValueError`` for another width.
    """
    return Layouts(pointer_bits, context_bits)


def native_pointer_bits() -> int:
    """Width of a pointer of this process, in bits."""
    return ctypes.sizeof(ctypes.c_void_p) * 8
