"""Structures against the compiler's tables for both ABIs, and constants against the headers' values."""

from __future__ import annotations

import csv
import ctypes
from pathlib import Path

import pytest

from pytest_rknpu.agent import abi

DATA = Path(__file__).parent / "data"
ABIS = {"aarch64": 64, "arm": 32}


def rows(architecture: str) -> list[dict[str, str]]:
    with (DATA / f"layout-{architecture}.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("architecture", ABIS)
def test_every_field_lies_where_the_compiler_puts_it(architecture: str) -> None:
    bits = ABIS[architecture]
    structures = abi.layouts(bits, bits)
    wrong = []
    for row in rows(architecture):
        structure = structures[row["struct"]]
        if row["field"] == "(total)":
            found = (0, ctypes.sizeof(structure))
        else:
            field = getattr(structure, row["field"])
            found = (field.offset, field.size)
        if found != (int(row["offset"]), int(row["size"])):
            wrong.append((row, found))
    assert not wrong


@pytest.mark.parametrize("architecture", ABIS)
def test_the_tables_and_the_structures_name_the_same_fields(architecture: str) -> None:
    listed = {(row["struct"], row["field"]) for row in rows(architecture) if row["field"] != "(total)"}
    built = {(name, field) for name, fields in abi.FIELDS.items() for field, _ in fields}
    assert built == listed


def test_an_emulated_mini_runtime_has_small_contexts_and_wide_pointers() -> None:
    structures = abi.layouts(64, 32)
    assert ctypes.sizeof(structures.context) == 4
    assert structures["rknn_init_extend"].ctx.size == 4
    assert structures["rknn_tensor_mem"].virt_addr.size == 8


@pytest.mark.parametrize(("pointer_bits", "context_bits"), [(16, 64), (64, 16), (0, 0)])
def test_other_widths_are_refused(pointer_bits: int, context_bits: int) -> None:
    with pytest.raises(ValueError, match="32 or 64"):
        abi.layouts(pointer_bits, context_bits)


# Values by facts section 1.4, written out a second time so that a slip in one of the two shows.
@pytest.mark.parametrize(
    ("enum", "values"),
    [
        (abi.ErrorCode, dict(zip(abi.ErrorCode.__members__, range(0, -15, -1), strict=True))),
        (
            abi.QueryCommand,
            {
                "RKNN_QUERY_MEM_SIZE": 6,
                "RKNN_QUERY_NATIVE_INPUT_ATTR": 8,
                "RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR": 8,
                "RKNN_QUERY_NATIVE_OUTPUT_ATTR": 9,
                "RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR": 9,
                "RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR": 10,
                "RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR": 17,
                "RKNN_QUERY_CMD_MAX": 18,
            },
        ),
        (abi.TensorType, {"RKNN_TENSOR_INT8": 2, "RKNN_TENSOR_BOOL": 9, "RKNN_TENSOR_BFLOAT16": 11}),
        (abi.TensorFormat, {"RKNN_TENSOR_NC1HWC2": 2, "RKNN_TENSOR_FORMAT_MAX": 4}),
        (abi.QuantizationType, {"RKNN_TENSOR_QNT_DFP": 1, "RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC": 2}),
        (
            abi.CoreMask,
            {"RKNN_NPU_CORE_0_1_2": 7, "RKNN_NPU_CORE_ALL": 0xFFFF, "RKNN_NPU_CORE_UNDEFINED": 65536},
        ),
        (
            abi.MemorySyncMode,
            {
                "RKNN_MEMORY_SYNC_TO_DEVICE": 1,
                "RKNN_MEMORY_SYNC_FROM_DEVICE": 2,
                "RKNN_MEMORY_SYNC_BIDIRECTIONAL": 3,
                "RKNN_MEMORY_SYNC_SYNC_BIDIRECTIONAL": 3,
            },
        ),
        (abi.InitFlag, {"RKNN_FLAG_ENABLE_SRAM": 0x800, "RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE": 0x8000}),
        (
            abi.AllocationFlag,
            {"RKNN_FLAG_MEMORY_NON_CACHEABLE": 2, "RKNN_MEM_FLAG_ALLOC_NO_CONTEXT": 0x20000},
        ),
        (abi.TensorMemoryFlag, {"RKNN_TENSOR_MEMORY_FLAGS_FROM_FD": 2}),
        (abi.MatmulType, {"RKNN_INT8_MM_INT4_TO_FLOAT16": 15, "RKNN_INT8_MM_INT8_TO_INT32": 2}),
    ],
)
def test_constants_have_the_headers_values(enum: type, values: dict[str, int]) -> None:
    members = enum.__members__  # type: ignore[attr-defined]
    assert {name: int(members[name]) for name in values} == values


def test_macros_and_type_names_of_the_header_exist_too() -> None:
    for name in abi.InitFlag.__members__:
        assert getattr(abi, name) is abi.InitFlag[name]
    assert abi.rknn_query_cmd is abi.QueryCommand


@pytest.mark.parametrize(
    ("code", "name"), [(0, "RKNN_SUCC"), (-5, "RKNN_ERR_PARAM_INVALID"), (7, "unknown code 7")]
)
def test_codes_have_names(code: int, name: str) -> None:
    assert abi.code_name(code) == name
