"""The RKNN C ABI in one place: constants, structures and prototypes, each defined in a module of its own."""

from __future__ import annotations

from .constants import (
    CUSTOM_STRING_LENGTH,
    RKNN_CUSTOM_OP_MAX_STR_LEN,
    RKNN_CUSTOM_OP_MAX_VALUE_LEN,
    RKNN_MAX_DIMS,
    RKNN_MAX_DYNAMIC_SHAPE_NUM,
    RKNN_MAX_NAME_LEN,
    RKNN_MAX_NUM_CHANNEL,
    TENSOR_BYTES,
    AllocationFlag,
    CoreMask,
    ErrorCode,
    InitFlag,
    MatmulLayout,
    MatmulQuantizationType,
    MatmulType,
    MemorySyncMode,
    QuantizationType,
    QueryCommand,
    TargetType,
    TensorFormat,
    TensorMemoryFlag,
    TensorType,
    code_name,
)
from .prototypes import PROTOTYPES, Prototype, concrete
from .structures import CONTEXT, FIELDS, POINTER, Layouts, layouts, native_pointer_bits

# The enums again under the header's type names (rknn_error_code is ours: the header has macros for the
# codes).
rknn_error_code = ErrorCode
rknn_query_cmd = QueryCommand
rknn_tensor_type = TensorType
rknn_tensor_qnt_type = QuantizationType
rknn_tensor_format = TensorFormat
rknn_core_mask = CoreMask
rknn_tensor_mem_flags = TensorMemoryFlag
rknn_mem_alloc_flags = AllocationFlag
rknn_mem_sync_mode = MemorySyncMode
rknn_matmul_type = MatmulType
rknn_matmul_quant_type = MatmulQuantizationType
rknn_matmul_layout = MatmulLayout
rknn_target_type = TargetType

# What the header defines as macros, again as names of their own.
RKNN_FLAG_PRIOR_HIGH = InitFlag.RKNN_FLAG_PRIOR_HIGH
RKNN_FLAG_PRIOR_MEDIUM = InitFlag.RKNN_FLAG_PRIOR_MEDIUM
RKNN_FLAG_PRIOR_LOW = InitFlag.RKNN_FLAG_PRIOR_LOW
RKNN_FLAG_ASYNC_MASK = InitFlag.RKNN_FLAG_ASYNC_MASK
RKNN_FLAG_COLLECT_PERF_MASK = InitFlag.RKNN_FLAG_COLLECT_PERF_MASK
RKNN_FLAG_MEM_ALLOC_OUTSIDE = InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE
RKNN_FLAG_SHARE_WEIGHT_MEM = InitFlag.RKNN_FLAG_SHARE_WEIGHT_MEM
RKNN_FLAG_FENCE_IN_OUTSIDE = InitFlag.RKNN_FLAG_FENCE_IN_OUTSIDE
RKNN_FLAG_FENCE_OUT_OUTSIDE = InitFlag.RKNN_FLAG_FENCE_OUT_OUTSIDE
RKNN_FLAG_COLLECT_MODEL_INFO_ONLY = InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY
RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE = InitFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE
RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU = InitFlag.RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU
RKNN_FLAG_ENABLE_SRAM = InitFlag.RKNN_FLAG_ENABLE_SRAM
RKNN_FLAG_SHARE_SRAM = InitFlag.RKNN_FLAG_SHARE_SRAM
RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY = InitFlag.RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY
RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE = InitFlag.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE
RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE = InitFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE
RKNN_FLAG_MODEL_BUFFER_ZERO_COPY = InitFlag.RKNN_FLAG_MODEL_BUFFER_ZERO_COPY
RKNN_MEM_FLAG_ALLOC_NO_CONTEXT = AllocationFlag.RKNN_MEM_FLAG_ALLOC_NO_CONTEXT

__all__ = [
    "CONTEXT",
    "CUSTOM_STRING_LENGTH",
    "FIELDS",
    "POINTER",
    "PROTOTYPES",
    "RKNN_CUSTOM_OP_MAX_STR_LEN",
    "RKNN_CUSTOM_OP_MAX_VALUE_LEN",
    "RKNN_FLAG_ASYNC_MASK",
    "RKNN_FLAG_COLLECT_MODEL_INFO_ONLY",
    "RKNN_FLAG_COLLECT_PERF_MASK",
    "RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE",
    "RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE",
    "RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY",
    "RKNN_FLAG_ENABLE_SRAM",
    "RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU",
    "RKNN_FLAG_FENCE_IN_OUTSIDE",
    "RKNN_FLAG_FENCE_OUT_OUTSIDE",
    "RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE",
    "RKNN_FLAG_MEM_ALLOC_OUTSIDE",
    "RKNN_FLAG_MODEL_BUFFER_ZERO_COPY",
    "RKNN_FLAG_PRIOR_HIGH",
    "RKNN_FLAG_PRIOR_LOW",
    "RKNN_FLAG_PRIOR_MEDIUM",
    "RKNN_FLAG_SHARE_SRAM",
    "RKNN_FLAG_SHARE_WEIGHT_MEM",
    "RKNN_MAX_DIMS",
    "RKNN_MAX_DYNAMIC_SHAPE_NUM",
    "RKNN_MAX_NAME_LEN",
    "RKNN_MAX_NUM_CHANNEL",
    "RKNN_MEM_FLAG_ALLOC_NO_CONTEXT",
    "TENSOR_BYTES",
    "AllocationFlag",
    "CoreMask",
    "ErrorCode",
    "InitFlag",
    "Layouts",
    "MatmulLayout",
    "MatmulQuantizationType",
    "MatmulType",
    "MemorySyncMode",
    "Prototype",
    "QuantizationType",
    "QueryCommand",
    "TargetType",
    "TensorFormat",
    "TensorMemoryFlag",
    "TensorType",
    "code_name",
    "concrete",
    "layouts",
    "native_pointer_bits",
    "rknn_core_mask",
    "rknn_error_code",
    "rknn_matmul_layout",
    "rknn_matmul_quant_type",
    "rknn_matmul_type",
    "rknn_mem_alloc_flags",
    "rknn_mem_sync_mode",
    "rknn_query_cmd",
    "rknn_target_type",
    "rknn_tensor_format",
    "rknn_tensor_mem_flags",
    "rknn_tensor_qnt_type",
    "rknn_tensor_type",
]
