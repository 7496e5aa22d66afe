"""Every constant of the RKNN C API (2.3.2 headers), as enums whose members bear the header's own names.

Sources: ``rknn_api.h``, ``rknn_matmul_api.h`` and ``rknn_custom_op.h``. All C enums are unsigned and four
bytes wide under the Linux ABIs. Names that the header gives twice for one value are aliases here too.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

RKNN_MAX_DIMS = 16
RKNN_MAX_NUM_CHANNEL = 15
RKNN_MAX_NAME_LEN = 256
RKNN_MAX_DYNAMIC_SHAPE_NUM = 512
RKNN_CUSTOM_OP_MAX_STR_LEN = 64
RKNN_CUSTOM_OP_MAX_VALUE_LEN = 32

CUSTOM_STRING_LENGTH = 1024
"""Length of ``rknn_custom_string.string``; the header has no name for it."""


class InitFlag(IntFlag):
    """``RKNN_FLAG_*``: the ``flag`` argument of ``rknn_init``."""

    RKNN_FLAG_PRIOR_HIGH = 0x0
    RKNN_FLAG_PRIOR_MEDIUM = 0x1
    RKNN_FLAG_PRIOR_LOW = 0x2
    RKNN_FLAG_ASYNC_MASK = 0x4
    RKNN_FLAG_COLLECT_PERF_MASK = 0x8
    RKNN_FLAG_MEM_ALLOC_OUTSIDE = 0x10
    RKNN_FLAG_SHARE_WEIGHT_MEM = 0x20
    RKNN_FLAG_FENCE_IN_OUTSIDE = 0x40
    RKNN_FLAG_FENCE_OUT_OUTSIDE = 0x80
    RKNN_FLAG_COLLECT_MODEL_INFO_ONLY = 0x100
    RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE = 0x200
    RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU = 0x400
    RKNN_FLAG_ENABLE_SRAM = 0x800
    RKNN_FLAG_SHARE_SRAM = 0x1000
    RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY = 0x2000
    RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE = 0x4000
    RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE = 0x8000
    RKNN_FLAG_MODEL_BUFFER_ZERO_COPY = 0x10000


class ErrorCode(IntEnum):
    """What the calls return; the spelling INCOMPATILE is the header's."""

    RKNN_SUCC = 0
    RKNN_ERR_FAIL = -1
    RKNN_ERR_TIMEOUT = -2
    RKNN_ERR_DEVICE_UNAVAILABLE = -3
    RKNN_ERR_MALLOC_FAIL = -4
    RKNN_ERR_PARAM_INVALID = -5
    RKNN_ERR_MODEL_INVALID = -6
    RKNN_ERR_CTX_INVALID = -7
    RKNN_ERR_INPUT_INVALID = -8
    RKNN_ERR_OUTPUT_INVALID = -9
    RKNN_ERR_DEVICE_UNMATCH = -10
    RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL = -11
    RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION = -12
    RKNN_ERR_TARGET_PLATFORM_UNMATCH = -13
    RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE = -14


class QueryCommand(IntEnum):
    """``rknn_query_cmd``."""

    RKNN_QUERY_IN_OUT_NUM = 0
    RKNN_QUERY_INPUT_ATTR = 1
    RKNN_QUERY_OUTPUT_ATTR = 2
    RKNN_QUERY_PERF_DETAIL = 3
    RKNN_QUERY_PERF_RUN = 4
    RKNN_QUERY_SDK_VERSION = 5
    RKNN_QUERY_MEM_SIZE = 6
    RKNN_QUERY_CUSTOM_STRING = 7
    RKNN_QUERY_NATIVE_INPUT_ATTR = 8
    RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9
    RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8
    RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9
    RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10
    RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11
    RKNN_QUERY_DEVICE_MEM_INFO = 12
    RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13
    RKNN_QUERY_CURRENT_INPUT_ATTR = 14
    RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15
    RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16
    RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17
    RKNN_QUERY_CMD_MAX = 18


class TensorType(IntEnum):
    """``rknn_tensor_type``."""

    RKNN_TENSOR_FLOAT32 = 0
    RKNN_TENSOR_FLOAT16 = 1
    RKNN_TENSOR_INT8 = 2
    RKNN_TENSOR_UINT8 = 3
    RKNN_TENSOR_INT16 = 4
    RKNN_TENSOR_UINT16 = 5
    RKNN_TENSOR_INT32 = 6
    RKNN_TENSOR_UINT32 = 7
    RKNN_TENSOR_INT64 = 8
    RKNN_TENSOR_BOOL = 9
    RKNN_TENSOR_INT4 = 10
    RKNN_TENSOR_BFLOAT16 = 11
    RKNN_TENSOR_TYPE_MAX = 12


class QuantizationType(IntEnum):
    """``rknn_tensor_qnt_type``."""

    RKNN_TENSOR_QNT_NONE = 0
    RKNN_TENSOR_QNT_DFP = 1
    RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2
    RKNN_TENSOR_QNT_MAX = 3


class TensorFormat(IntEnum):
    """``rknn_tensor_format``."""

    RKNN_TENSOR_NCHW = 0
    RKNN_TENSOR_NHWC = 1
    RKNN_TENSOR_NC1HWC2 = 2
    RKNN_TENSOR_UNDEFINED = 3
    RKNN_TENSOR_FORMAT_MAX = 4


class CoreMask(IntFlag):
    """``rknn_core_mask``."""

    RKNN_NPU_CORE_AUTO = 0
    RKNN_NPU_CORE_0 = 1
    RKNN_NPU_CORE_1 = 2
    RKNN_NPU_CORE_2 = 4
    RKNN_NPU_CORE_0_1 = 3
    RKNN_NPU_CORE_0_1_2 = 7
    RKNN_NPU_CORE_ALL = 0xFFFF
    RKNN_NPU_CORE_UNDEFINED = 0x10000


class TensorMemoryFlag(IntEnum):
    """``rknn_tensor_mem_flags``: who owns a ``rknn_tensor_mem``. Ordinals, not bits."""

    RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1
    RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2
    RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3
    RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN = 4


class AllocationFlag(IntFlag):
    """``rknn_mem_alloc_flags`` and ``RKNN_MEM_FLAG_ALLOC_NO_CONTEXT``, both for ``rknn_create_mem2``."""

    RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0
    RKNN_FLAG_MEMORY_CACHEABLE = 1
    RKNN_FLAG_MEMORY_NON_CACHEABLE = 2
    RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 4
    RKNN_MEM_FLAG_ALLOC_NO_CONTEXT = 0x20000


class MemorySyncMode(IntEnum):
    """``rknn_mem_sync_mode``; the last name is the spelling of the user guide 2.5.0, not the header's."""

    RKNN_MEMORY_SYNC_TO_DEVICE = 1
    RKNN_MEMORY_SYNC_FROM_DEVICE = 2
    RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3
    RKNN_MEMORY_SYNC_SYNC_BIDIRECTIONAL = 3


class MatmulType(IntEnum):
    """``rknn_matmul_type``; 13 and 14 are unused."""

    RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1
    RKNN_INT8_MM_INT8_TO_INT32 = 2
    RKNN_INT8_MM_INT8_TO_INT8 = 3
    RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4
    RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5
    RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6
    RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7
    RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8
    RKNN_INT8_MM_INT8_TO_FLOAT32 = 9
    RKNN_INT4_MM_INT4_TO_INT16 = 10
    RKNN_INT8_MM_INT4_TO_INT32 = 11
    RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12
    RKNN_INT8_MM_INT4_TO_FLOAT16 = 15


class MatmulQuantizationType(IntEnum):
    """``rknn_matmul_quant_type``."""

    RKNN_QUANT_TYPE_PER_LAYER_SYM = 0
    RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1
    RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2
    RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3
    RKNN_QUANT_TYPE_PER_GROUP_SYM = 4
    RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5


class MatmulLayout(IntEnum):
    """``rknn_matmul_layout``."""

    RKNN_MM_LAYOUT_NORM = 0
    RKNN_MM_LAYOUT_NATIVE = 1
    RKNN_MM_LAYOUT_TP_NORM = 2


class TargetType(IntEnum):
    """``rknn_target_type``: where a custom operator runs."""

    RKNN_TARGET_TYPE_CPU = 1
    RKNN_TARGET_TYPE_GPU = 2
    RKNN_TARGET_TYPE_MAX = 3


def code_name(code: int) -> str:
    """The header's name of a return code; ``"unknown code -99"`` for one that no header names."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"unknown code {code}"


TENSOR_BYTES = {
    TensorType.RKNN_TENSOR_FLOAT32: 4,
    TensorType.RKNN_TENSOR_FLOAT16: 2,
    TensorType.RKNN_TENSOR_INT8: 1,
    TensorType.RKNN_TENSOR_UINT8: 1,
    TensorType.RKNN_TENSOR_INT16: 2,
    TensorType.RKNN_TENSOR_UINT16: 2,
    TensorType.RKNN_TENSOR_INT32: 4,
    TensorType.RKNN_TENSOR_UINT32: 4,
    TensorType.RKNN_TENSOR_INT64: 8,
    TensorType.RKNN_TENSOR_BOOL: 1,
    TensorType.RKNN_TENSOR_BFLOAT16: 2,
}
"""Bytes of one element of each tensor type; INT4 is half a byte and therefore missing."""
