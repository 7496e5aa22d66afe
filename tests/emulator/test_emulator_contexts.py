"""Contexts through the C functions: rknn_init, queries, duplicates, memory from outside, destruction."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from emulated_board import TO_DEVICE, Board, bound, copied, random_bytes, zero_copy
from qdq_models import branches, chain, classifier, odd_rows, one_convolution

from pytest_rknpu.agent.abi import (
    AllocationFlag,
    CoreMask,
    ErrorCode,
    InitFlag,
    QueryCommand,
    TensorFormat,
    TensorType,
)
from pytest_rknpu.emulator import pack
from pytest_rknpu.inventory.socs import SOCS

Query = QueryCommand
OUTSIDE = InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE
OUTSIDE_INTERNAL = InitFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE
MODEL = pack(chain(), "rk3588")


def test_init_from_a_path(tmp_path: Path) -> None:
    file = tmp_path / "model.rkem"
    file.write_bytes(MODEL)
    board, handle = Board(), Board().layouts.context(0)
    path = ctypes.create_string_buffer(str(file).encode())
    board.check("init", ctypes.addressof(handle), ctypes.addressof(path), 0, 0, 0)
    assert board.sizes(handle.value).total_weight_size > 0


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\0", ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL[:64], ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL[: len(MODEL) // 2], ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL[:-1], ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL + b"\0", ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL[:-1] + bytes([MODEL[-1] ^ 1]), ErrorCode.RKNN_ERR_MODEL_INVALID),
        (b"RKNN" + MODEL[4:], ErrorCode.RKNN_ERR_MODEL_INVALID),
        (MODEL[:4] + random_bytes(500, 1).tobytes(), ErrorCode.RKNN_ERR_MODEL_INVALID),
        (pack(chain(), "rk3566"), ErrorCode.RKNN_ERR_TARGET_PLATFORM_UNMATCH),
        (pack(chain(), "rk3588", remove_weight=True), ErrorCode.RKNN_ERR_MODEL_INVALID),
        (pack(chain(), "rk3588", "9.1.0"), ErrorCode.RKNN_ERR_MODEL_INVALID),
    ],
)
def test_models_that_are_refused(data: bytes, code: ErrorCode, capfd: pytest.CaptureFixture[str]) -> None:
    board = Board()
    assert board.init(data, code=code) == 0
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("E RKNN: [")
    assert "emulated: rknn_init" in lines[0]
    board.init(MODEL)  # the board still works


def test_null_arguments_of_init() -> None:
    board = Board()
    handle = board.layouts.context(5)
    board.check("init", 0, 0, 10, 0, 0, code=ErrorCode.RKNN_ERR_CTX_INVALID)
    board.check("init", ctypes.addressof(handle), 0, 10, 0, 0, code=ErrorCode.RKNN_ERR_PARAM_INVALID)
    assert handle.value == 0
    path = ctypes.create_string_buffer(b"/nowhere/model.rkem")
    board.check(
        "init", ctypes.addressof(handle), ctypes.addressof(path), 0, 0, 0, code=ErrorCode.RKNN_ERR_FAIL
    )


def test_every_call_refuses_a_context_that_is_not_alive() -> None:
    board = Board()
    context = board.init(MODEL)
    board.check("destroy", context)
    info = ctypes.create_string_buffer(512)
    for dead in (0, context, 0x1234):
        for call, arguments in {
            "run": (0,),
            "destroy": (),
            "query": (0, ctypes.addressof(info), 8),
            "inputs_set": (1, ctypes.addressof(info)),
            "outputs_get": (1, ctypes.addressof(info), 0),
            "outputs_release": (1, ctypes.addressof(info)),
            "set_core_mask": (1,),
            "set_io_mem": (0, 0),
            "set_weight_mem": (0,),
            "set_internal_mem": (0,),
        }.items():
            board.check(call, dead, *arguments, code=ErrorCode.RKNN_ERR_CTX_INVALID)
        assert board.call("create_mem", dead, 4096) == 0
        handle, out = board.layouts.context(dead), board.layouts.context(7)
        board.check(
            "dup_context",
            ctypes.addressof(handle),
            ctypes.addressof(out),
            code=ErrorCode.RKNN_ERR_CTX_INVALID,
        )


@pytest.mark.parametrize("soc", SOCS)
def test_every_soc_runs_a_model(soc: str) -> None:
    board = Board(soc)
    model = pack(one_convolution(), soc)
    io = zero_copy(board, model)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 1)
    io.run()
    first = io.output.cpu.copy()
    assert first.any()
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 2)
    io.run()
    assert (io.output.cpu != first).any()


def fields(attr: object) -> tuple[object, ...]:
    """(format, dims, w_stride, size, size_with_stride) of an attribute."""
    a: object = attr
    dims = tuple(a.dims[: a.n_dims])  # type: ignore[attr-defined]
    return (TensorFormat(a.fmt), dims, a.w_stride, a.size, a.size_with_stride)  # type: ignore[attr-defined]


NCHW, NHWC = TensorFormat.RKNN_TENSOR_NCHW, TensorFormat.RKNN_TENSOR_NHWC
BLOCKS, UNDEFINED = TensorFormat.RKNN_TENSOR_NC1HWC2, TensorFormat.RKNN_TENSOR_UNDEFINED


@pytest.mark.parametrize(
    ("soc", "command", "expected"),
    [
        ("rk3588", Query.RKNN_QUERY_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rk3588", Query.RKNN_QUERY_NATIVE_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rk3566", Query.RKNN_QUERY_NATIVE_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 24, 600, 720)),
        ("rk3588", Query.RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rk3588", Query.RKNN_QUERY_CURRENT_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rk3588", Query.RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rk3588", Query.RKNN_QUERY_OUTPUT_ATTR, (NCHW, (1, 8, 10, 20), 0, 1600, 1600)),
        ("rk3588", Query.RKNN_QUERY_CURRENT_OUTPUT_ATTR, (NCHW, (1, 8, 10, 20), 0, 1600, 1600)),
        ("rk3588", Query.RKNN_QUERY_NATIVE_OUTPUT_ATTR, (BLOCKS, (1, 1, 10, 20, 16), 0, 3200, 3200)),
        ("rk3566", Query.RKNN_QUERY_NATIVE_OUTPUT_ATTR, (BLOCKS, (1, 1, 10, 20, 8), 0, 1600, 1600)),
        ("rk3588", Query.RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR, (BLOCKS, (1, 1, 10, 20, 16), 0, 3200, 3200)),
        ("rk3588", Query.RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, (NHWC, (1, 10, 20, 8), 0, 1600, 1600)),
        ("rv1106", Query.RKNN_QUERY_INPUT_ATTR, (NHWC, (1, 10, 20, 3), 32, 600, 960)),
        ("rv1106", Query.RKNN_QUERY_OUTPUT_ATTR, (BLOCKS, (1, 1, 10, 20, 16), 0, 3200, 3200)),
    ],
)
def test_attributes(soc: str, command: QueryCommand, expected: tuple[object, ...]) -> None:
    board = Board(soc)
    attr = board.attr(board.init(pack(odd_rows(), soc)), command)
    assert fields(attr) == expected
    assert attr.n_elems == np.prod(expected[1])  # type: ignore[arg-type]
    assert attr.type == TensorType.RKNN_TENSOR_INT8
    is_input = "INPUT" in command.name
    assert attr.name == (b"x" if is_input else b"b.out")
    assert (attr.scale, attr.zp) == ((1 / 32, -9) if is_input else (1 / 16, 3))


def test_attributes_of_tensors_that_have_not_four_dimensions() -> None:
    board = Board("rk3588")
    context = board.init(pack(classifier(), "rk3588"))
    for command in (Query.RKNN_QUERY_OUTPUT_ATTR, Query.RKNN_QUERY_NATIVE_OUTPUT_ATTR):
        assert fields(board.attr(context, command, 1)) == (UNDEFINED, (1, 10), 0, 10, 10)
    board = Board("rv1103")
    attr = board.attr(board.init(pack(classifier(), "rv1103")), Query.RKNN_QUERY_OUTPUT_ATTR)
    assert fields(attr) == (BLOCKS, (1, 1, 1, 1, 16), 0, 16, 16)


def test_simple_queries() -> None:
    board = Board(runtime_version="2.1.0", driver_version="0.9.3")
    model = pack(branches(), "rk3588", custom_string="from the test")
    context = board.init(model, InitFlag.RKNN_FLAG_ENABLE_SRAM)
    counts = board.query(context, Query.RKNN_QUERY_IN_OUT_NUM, "rknn_input_output_num")
    assert (counts.n_input, counts.n_output) == (1, 2)
    version = board.query(context, Query.RKNN_QUERY_SDK_VERSION, "rknn_sdk_version")
    assert (version.api_version, version.drv_version) == (b"emulated 2.1.0", b"emulated 0.9.3")
    assert (
        board.query(context, Query.RKNN_QUERY_CUSTOM_STRING, "rknn_custom_string").string == b"from the test"
    )
    sizes = board.sizes(context)
    assert sizes.total_dma_allocated_size >= sizes.total_weight_size + sizes.total_internal_size
    assert sizes.total_sram_size == 956 * 1024
    assert sizes.free_sram_size == sizes.total_sram_size - sizes.total_internal_size


def test_queries_that_are_refused() -> None:
    board = Board()
    context = board.init(MODEL)
    info = board.layouts["rknn_tensor_attr"](index=3)
    address, size = ctypes.addressof(info), ctypes.sizeof(info)
    invalid = ErrorCode.RKNN_ERR_PARAM_INVALID
    board.check("query", context, Query.RKNN_QUERY_INPUT_ATTR, address, size, code=invalid)
    board.check("query", context, Query.RKNN_QUERY_OUTPUT_ATTR, address, size - 1, code=invalid)
    board.check("query", context, Query.RKNN_QUERY_OUTPUT_ATTR, 0, size, code=invalid)
    unknown = (
        Query.RKNN_QUERY_CMD_MAX,
        Query.RKNN_QUERY_INPUT_DYNAMIC_RANGE,
        Query.RKNN_QUERY_DEVICE_MEM_INFO,
        99,
    )
    for command in unknown:
        board.check("query", context, command, address, size, code=invalid)


MINI_LACKS = [3, 4, 13, 14, 15, 16, 17]


@pytest.mark.parametrize("command", MINI_LACKS)
def test_the_mini_runtime_lacks_queries(command: int) -> None:
    board = Board("rv1106")
    context = board.init(pack(chain(), "rv1106"))
    info = ctypes.create_string_buffer(40000)
    for size in (8, 16, 376, 33040):
        board.check(
            "query", context, command, ctypes.addressof(info), size, code=ErrorCode.RKNN_ERR_PARAM_INVALID
        )


def test_device_memory_holds_the_model() -> None:
    board = Board("rv1106")
    context = board.init(pack(chain(), "rv1106"))
    info = board.query(context, Query.RKNN_QUERY_DEVICE_MEM_INFO, "rknn_tensor_mem")
    assert info.size > 0
    assert any(ctypes.string_at(info.virt_addr, info.size))
    assert board.query(context, Query.RKNN_QUERY_DEVICE_MEM_INFO, "rknn_tensor_mem").fd == info.fd


def test_performance_queries() -> None:
    board = Board()
    io = zero_copy(board, MODEL, InitFlag.RKNN_FLAG_COLLECT_PERF_MASK)
    info = board.layouts["rknn_perf_run"]()
    board.check(
        "query",
        io.context,
        Query.RKNN_QUERY_PERF_RUN,
        ctypes.addressof(info),
        8,
        code=ErrorCode.RKNN_ERR_FAIL,
    )
    io.run()
    assert board.query(io.context, Query.RKNN_QUERY_PERF_RUN, "rknn_perf_run").run_duration > 0
    detail = board.query(io.context, Query.RKNN_QUERY_PERF_DETAIL, "rknn_perf_detail")
    text = ctypes.string_at(detail.perf_data, detail.data_len).decode()
    assert text.startswith("emulated\n")
    assert text.count("Conv") == 4
    plain = zero_copy(board, MODEL)
    plain.run()
    info = board.layouts["rknn_perf_detail"]()
    arguments = (plain.context, Query.RKNN_QUERY_PERF_DETAIL, ctypes.addressof(info), 16)
    board.check("query", *arguments, code=ErrorCode.RKNN_ERR_FAIL)


@pytest.mark.parametrize(
    ("soc", "legal", "illegal"),
    [
        ("rk3588", [0, 1, 2, 4, 3, 7, 0xFFFF], [5, 6, 0x10000]),
        ("rk3576", [0, 1, 2, 3, 0xFFFF], [4, 7, 0x10000]),
        ("rk3566", [], [0, 1]),
    ],
)
def test_core_masks(soc: str, legal: list[int], illegal: list[int]) -> None:
    board = Board(soc)
    model = pack(chain(), soc)
    io = zero_copy(board, model)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 3)
    io.run()
    expected = io.output.cpu.copy()
    for mask in legal:
        board.check("set_core_mask", io.context, mask)
        io.output.cpu[:] = 0
        board.sync(io.output, TO_DEVICE, io.context)
        io.run()
        np.testing.assert_array_equal(io.output.cpu, expected)
    for mask in illegal:
        assert board.call("set_core_mask", io.context, mask) < 0
    assert int(CoreMask.RKNN_NPU_CORE_AUTO) == 0


def test_a_duplicate_shares_weights_and_outlives_its_parent() -> None:
    board = Board()
    parent = zero_copy(board, MODEL)
    duplicate = bound(board, board.duplicate(parent.context))
    data = [random_bytes(len(parent.input.cpu), seed) for seed in (1, 2)]
    results = []
    for io, given in ((parent, data[0]), (duplicate, data[1])):
        io.input.cpu[:] = given
        io.run()
        results.append(io.output.cpu.copy())
    board.check("destroy", parent.context)
    duplicate.input.cpu[:] = data[0]
    duplicate.run()
    np.testing.assert_array_equal(duplicate.output.cpu, results[0])
    assert (results[0] != results[1]).any()


def test_weights_of_another_context() -> None:
    board = Board()
    master = zero_copy(board, MODEL)
    extend = board.layouts["rknn_init_extend"](ctx=master.context)
    slave = pack(chain(), "rk3588", remove_weight=True)
    flags = InitFlag.RKNN_FLAG_SHARE_WEIGHT_MEM
    io = bound(board, board.init(slave, flags, extend=ctypes.addressof(extend)))
    for each in (master, io):
        each.input.cpu[:] = random_bytes(len(each.input.cpu), 5)
        each.run()
    np.testing.assert_array_equal(io.output.cpu, master.output.cpu)
    other = board.init(pack(one_convolution(), "rk3588"))
    wrong = board.layouts["rknn_init_extend"](ctx=other)
    board.init(slave, flags, code=ErrorCode.RKNN_ERR_PARAM_INVALID, extend=ctypes.addressof(wrong))
    board.init(slave, flags, code=ErrorCode.RKNN_ERR_CTX_INVALID)


def test_a_model_inside_a_larger_buffer() -> None:
    board = Board()
    buffer = b"\xaa" * 100 + MODEL + b"\xbb" * 50
    extend = board.layouts["rknn_init_extend"](real_model_offset=100, real_model_size=len(MODEL))
    flag = InitFlag.RKNN_FLAG_MODEL_BUFFER_ZERO_COPY
    assert board.init(buffer, flag, extend=ctypes.addressof(extend))
    beyond = board.layouts["rknn_init_extend"](real_model_offset=200, real_model_size=len(MODEL))
    board.init(buffer, flag, code=ErrorCode.RKNN_ERR_PARAM_INVALID, extend=ctypes.addressof(beyond))


def test_all_memory_from_outside() -> None:
    board = Board()
    io = zero_copy(board, MODEL, OUTSIDE)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 6)
    board.check("run", io.context, 0, code=ErrorCode.RKNN_ERR_FAIL)
    sizes = board.sizes(io.context)
    weights = board.memory(io.context, sizes.total_weight_size)
    internal = board.memory(io.context, sizes.total_internal_size)
    board.check("set_internal_mem", io.context, internal.address)
    board.check("set_weight_mem", io.context, weights.address)
    board.sync(weights, TO_DEVICE, io.context)
    io.run()
    own = zero_copy(board, MODEL)
    own.input.cpu[:] = io.input.cpu
    own.run()
    np.testing.assert_array_equal(io.output.cpu, own.output.cpu)


def test_weights_from_outside_need_the_applications_sync() -> None:
    """MEM-14: the runtime fills them on the CPU and does not sync."""
    board = Board()
    io = zero_copy(board, MODEL, OUTSIDE)
    sizes = board.sizes(io.context)
    weights = board.memory(io.context, sizes.total_weight_size)
    internal = board.memory(io.context, sizes.total_internal_size)
    board.check("set_internal_mem", io.context, internal.address)
    board.check("set_weight_mem", io.context, weights.address)
    assert weights.cpu.any()
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 6)
    io.run()
    without = io.output.cpu.copy()
    board.sync(weights, TO_DEVICE, io.context)
    io.run()
    assert (io.output.cpu != without).any()


@pytest.mark.parametrize("missing", [1, 64, 5000])
def test_memory_from_outside_must_be_large_enough(missing: int) -> None:
    board = Board()
    context = board.init(MODEL, OUTSIDE)
    sizes = board.sizes(context)
    for call, size in (
        ("set_weight_mem", sizes.total_weight_size),
        ("set_internal_mem", sizes.total_internal_size),
    ):
        small = board.memory(context, size - missing)
        board.check(call, context, small.address, code=ErrorCode.RKNN_ERR_PARAM_INVALID)


@pytest.mark.parametrize("what", ["weight", "internal"])
def test_memory_from_outside_must_outlive_the_runs(what: str) -> None:
    board = Board()
    io = zero_copy(board, MODEL, OUTSIDE)
    sizes = board.sizes(io.context)
    memories = {
        name: board.memory(io.context, size)
        for name, size in (("weight", sizes.total_weight_size), ("internal", sizes.total_internal_size))
    }
    for name, memory in memories.items():
        board.check(f"set_{name}_mem", io.context, memory.address)
    io.run()
    board.check("destroy_mem", io.context, memories[what].address)
    board.check("run", io.context, 0, code=ErrorCode.RKNN_ERR_PARAM_INVALID)
    fresh = board.memory(io.context, len(memories[what].cpu))
    board.check(f"set_{what}_mem", io.context, fresh.address)
    io.run()


def test_memory_from_outside_needs_its_flag() -> None:
    board = Board()
    plain, internal = board.init(MODEL), board.init(MODEL, OUTSIDE_INTERNAL)
    memory = board.memory(plain, 1 << 20)
    invalid = ErrorCode.RKNN_ERR_PARAM_INVALID
    board.check("set_internal_mem", plain, memory.address, code=invalid)
    board.check("set_weight_mem", plain, memory.address, code=invalid)
    board.check("set_weight_mem", internal, memory.address, code=invalid)
    board.check("set_internal_mem", internal, memory.address)


def test_two_models_take_turns_on_one_internal_buffer() -> None:
    board = Board()
    models = [MODEL, pack(branches(), "rk3588")]
    expected = []
    for model in models:
        size = board.native_input(board.init(model)).size_with_stride
        expected.append(copied(board, model, random_bytes(size, 9).tobytes()))
    ios = [zero_copy_logical(board, model) for model in models]
    largest = max(board.sizes(context).total_internal_size for context, _, _ in ios)
    internal = board.memory(ios[0][0], largest)
    for context, _, _ in ios:
        board.check("set_internal_mem", context, internal.address)
    for _ in range(2):
        for (context, source, result), wanted in zip(ios, expected, strict=True):
            internal.cpu[:] = 0xEE
            board.sync(internal, TO_DEVICE, context)
            source.cpu[:] = random_bytes(len(source.cpu), 9)
            board.check("run", context, 0)
            assert result.cpu.tobytes() == wanted


def zero_copy_logical(board: Board, model: bytes) -> tuple[int, object, object]:
    """(context, input, output 0): native input, logical outputs, internal memory from outside."""
    context = board.init(model, OUTSIDE_INTERNAL)
    attr = board.native_input(context)
    source = board.memory(context, attr.size_with_stride)
    board.bind(context, source, attr)
    results = []
    for index in range(board.query(context, Query.RKNN_QUERY_IN_OUT_NUM, "rknn_input_output_num").n_output):
        attr = board.attr(context, Query.RKNN_QUERY_OUTPUT_ATTR, index)
        results.append(board.memory(context, attr.size_with_stride))
        board.bind(context, results[-1], attr)
    return context, source, results[0]


def test_model_information_only() -> None:
    board = Board()
    context = board.init(MODEL, InitFlag.RKNN_FLAG_COLLECT_MODEL_INFO_ONLY)
    assert board.sizes(context).total_internal_size > 0
    info = board.layouts["rknn_input_output_num"]()
    arguments = (context, Query.RKNN_QUERY_IN_OUT_NUM, ctypes.addressof(info), 8)
    board.check("query", *arguments, code=ErrorCode.RKNN_ERR_CTX_INVALID)
    assert board.call("run", context, 0) < 0


def test_exports_by_version_and_soc() -> None:
    old, older = Board(runtime_version="1.6.0"), Board(runtime_version="1.5.2")
    assert old.library.symbol("rknn_mem_sync")
    assert old.library.symbol("rknn_create_mem2") is None
    assert older.library.symbol("rknn_mem_sync") is None
    assert Board().library.symbol("rknn_create_mem2")
    mini = Board("rv1103")
    for absent in ("rknn_set_core_mask", "rknn_set_batch_core_num", "rknn_create_mem_from_mb_blk"):
        assert mini.library.symbol(absent) is None
    assert Board().library.symbol("rknn_matmul_create") is None, "not emulated, so not exported"
    assert Board().library.symbol("no_such_function") is None


@pytest.mark.parametrize(
    ("soc", "call", "arguments"),
    [
        ("rk3588", "wait", (0,)),
        ("rk3588", "set_batch_core_num", (1,)),
        ("rk3588", "set_input_shapes", (1, 0)),
        ("rk3566", "set_core_mask", (1,)),
        ("rv1106", "inputs_set", (1, 0)),
        ("rv1106", "outputs_get", (1, 0, 0)),
        ("rv1106", "wait", (0,)),
    ],
)
def test_unsupported_calls_answer_with_an_error(soc: str, call: str, arguments: tuple[int, ...]) -> None:
    board = Board(soc)
    context = board.init(pack(chain(), soc))
    board.check(call, context, *arguments, code=ErrorCode.RKNN_ERR_FAIL)


def test_contexts_of_the_mini_runtime_have_32_bits() -> None:
    board = Board("rv1106")
    assert ctypes.sizeof(board.layouts.context) == 4
    context = board.init(pack(chain(), "rv1106"))
    assert 0 < context < 2**32
    memory = board.memory(context, 100, AllocationFlag.RKNN_FLAG_MEMORY_CACHEABLE)
    board.check("mem_sync", 0, memory.address, TO_DEVICE, code=ErrorCode.RKNN_ERR_CTX_INVALID)
    board.sync(memory, TO_DEVICE, context)
