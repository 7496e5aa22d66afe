"""Zero copy through the C functions: cache maintenance, flags, kinds of memory, imports, bindings."""

from __future__ import annotations

import ctypes
import gc
import os

import numpy as np
import numpy.typing as npt
import pytest
from emulated_board import (
    BIDIRECTIONAL,
    FROM_DEVICE,
    NO_FLUSH,
    TO_DEVICE,
    Board,
    ZeroCopy,
    bound,
    channels_first,
    copied,
    random_bytes,
    zero_copy,
)
from qdq_models import chain, classifier, odd_rows, one_convolution

from pytest_rknpu.agent.abi import (
    AllocationFlag,
    ErrorCode,
    InitFlag,
    QueryCommand,
    TensorFormat,
    TensorMemoryFlag,
    TensorType,
)
from pytest_rknpu.emulator import pack

MODEL = pack(one_convolution(), "rk3588")
ROUNDS = 20
INVALID = ErrorCode.RKNN_ERR_PARAM_INVALID


def native_reference(board: Board, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """(1, C, H, W) of MODEL's output for native input bytes, by the copying API."""
    return np.frombuffer(copied(board, MODEL, data.tobytes()), np.int8).reshape(1, 16, 16, 16)


def shown(io: ZeroCopy, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    return channels_first(data, io.board.native_output(io.context), 16)


@pytest.mark.parametrize("seed", range(10))
def test_correct_syncs_equal_the_copying_api(seed: int) -> None:
    board = Board(seed=seed)
    io = zero_copy(board, MODEL, NO_FLUSH)
    for number in range(ROUNDS):
        data = random_bytes(len(io.input.cpu), number)
        io.push(data)
        io.run()
        np.testing.assert_array_equal(shown(io, io.pull()), native_reference(board, data))


@pytest.mark.parametrize("seed", range(5))
def test_without_flags_the_run_maintains_the_caches(seed: int) -> None:
    board = Board(seed=seed)
    io = zero_copy(board, MODEL)
    for number in range(ROUNDS):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        expected = native_reference(board, io.input.cpu)
        np.testing.assert_array_equal(shown(io, io.output.cpu), expected)


def test_without_to_device_the_npu_reads_old_bytes() -> None:
    board = Board()
    io = zero_copy(board, MODEL, NO_FLUSH)
    old, new = random_bytes(len(io.input.cpu), 1), random_bytes(len(io.input.cpu), 2)
    io.push(old)
    io.input.cpu[:] = new
    io.run()
    actual = shown(io, io.pull())
    stale = actual == native_reference(board, old)
    assert stale.mean() > 0.8, "a few lines may have been written back by themselves"


def test_without_from_device_the_cpu_reads_old_bytes() -> None:
    board = Board()
    io = zero_copy(board, MODEL, NO_FLUSH)
    io.push(random_bytes(len(io.input.cpu), 1))
    io.run()
    before = io.pull()
    io.push(random_bytes(len(io.input.cpu), 2))
    io.run()
    assert (io.output.cpu == before).mean() > 0.8


@pytest.mark.parametrize("flag", ["INPUT", "OUTPUT"])
def test_each_flag_stops_one_side(flag: str) -> None:
    board = Board()
    io = zero_copy(board, MODEL, InitFlag[f"RKNN_FLAG_DISABLE_FLUSH_{flag}_MEM_CACHE"])
    results = []
    for number in range(2):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        results.append(shown(io, io.output.cpu.copy()))
    right = [native_reference(board, random_bytes(len(io.input.cpu), number)) for number in range(2)]
    assert (results[1] == right[1]).mean() < 0.3


def test_old_runtimes_ignore_the_flags() -> None:
    board = Board(runtime_version="1.6.0")
    io = zero_copy(board, MODEL, NO_FLUSH)
    for number in range(5):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        np.testing.assert_array_equal(shown(io, io.output.cpu), native_reference(board, io.input.cpu))


def test_non_cacheable_memory_needs_no_sync() -> None:
    board = Board()
    io = zero_copy(board, MODEL, NO_FLUSH, AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE)
    for number in range(5):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        np.testing.assert_array_equal(shown(io, io.output.cpu), native_reference(board, io.input.cpu))
    board.sync(io.input, TO_DEVICE, 0)


def test_one_memory_is_output_and_input() -> None:
    """BIDIRECTIONAL between: the CPU sees A's result and B sees the CPU's edit."""
    board = Board()
    first, second = (zero_copy(board, MODEL, NO_FLUSH) for _ in range(2))
    board.bind(second.context, first.output, board.native_input(second.context))
    for number in range(ROUNDS):
        data = random_bytes(len(first.input.cpu), number)
        first.push(data)
        first.run()
        board.sync(first.output, BIDIRECTIONAL, first.context)
        np.testing.assert_array_equal(shown(first, first.output.cpu), native_reference(board, data))
        first.output.cpu[100:150] = number
        edited = first.output.cpu.copy()
        board.sync(first.output, BIDIRECTIONAL, first.context)
        second.run()
        np.testing.assert_array_equal(shown(second, second.pull()), native_reference(board, edited))


def test_dirty_output_lines_come_back_over_the_result_without_a_hand_over() -> None:
    """Why an application cleans what it wrote into an output before the run."""
    board = Board()
    io = zero_copy(board, MODEL)
    lost = 0
    for number in range(100):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.output.cpu[:] = 0xA5 if number % 2 else 0x5A
        io.run()
        lost += (shown(io, io.output.cpu) != native_reference(board, io.input.cpu)).any()
    assert lost


def test_an_imported_part_equals_own_memory() -> None:
    board = Board()
    io = zero_copy(board, MODEL, NO_FLUSH)
    size = len(io.output.cpu)
    whole = board.memory(io.context, size + 8192)
    part = board.imported(io.context, whole, size, 4096)
    assert part is not None
    assert part.structure.flags == TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
    assert part.structure.virt_addr == whole.structure.virt_addr
    board.bind(io.context, part, board.native_output(io.context))
    imported = ZeroCopy(board, io.context, io.input, part)
    for number in range(ROUNDS):
        data = random_bytes(len(io.input.cpu), number)
        whole.cpu[:] = 0xC5
        board.sync(whole, TO_DEVICE, io.context)
        imported.push(data)
        imported.run()
        np.testing.assert_array_equal(shown(io, imported.pull()), native_reference(board, data))
        board.sync(whole, FROM_DEVICE, io.context)
        assert (whole.cpu[:4096] == 0xC5).all()
        assert (whole.cpu[4096 + size :] == 0xC5).all()


def test_a_source_may_be_destroyed_before_its_import() -> None:
    board = Board()
    io = zero_copy(board, MODEL)
    whole = board.memory(io.context, 8192)
    part = board.imported(io.context, whole, 4096, 4096)
    assert part is not None
    board.check("destroy_mem", io.context, whole.address)
    part.cpu[:] = 7
    board.sync(part, TO_DEVICE, io.context)
    board.check("destroy_mem", io.context, part.address)


def test_a_foreign_descriptor_is_imported() -> None:
    board = Board()
    io = zero_copy(board, MODEL, NO_FLUSH)
    size = len(io.input.cpu)
    fd = os.memfd_create("foreign")
    os.ftruncate(fd, 4096 * 4)
    address = board.call("create_mem_from_fd", io.context, fd, 0x1000, size, 4096)
    assert address
    structure = board.layouts["rknn_tensor_mem"].from_address(address)
    attr = board.native_input(io.context)
    board.check("set_io_mem", io.context, address, ctypes.addressof(attr))
    data = random_bytes(size, 4)
    os.pwrite(fd, data.tobytes(), 4096)
    board.check("mem_sync", io.context, address, TO_DEVICE)
    io.run()
    np.testing.assert_array_equal(shown(io, io.pull()), native_reference(board, data))
    assert (structure.fd, structure.offset, structure.size) == (fd, 4096, size)
    board.check("destroy_mem", io.context, address)
    os.close(fd)


@pytest.mark.parametrize(
    ("size", "offset"), [(100, 16), (100, 63), (0, 0), (100, -64), (8193, 0), (100, 8192), (4096, 4160)]
)
def test_imports_that_are_refused(size: int, offset: int) -> None:
    board = Board()
    context = board.init(MODEL)
    whole = board.memory(context, 8192)
    assert board.imported(context, whole, size, offset) is None


def test_imports_of_no_memory_are_refused() -> None:
    board = Board()
    context = board.init(MODEL)
    whole = board.memory(context, 8192)
    pipe, other = os.pipe()
    try:
        for fd in (-1, 9999, pipe):
            assert board.call("create_mem_from_fd", context, fd, whole.structure.virt_addr, 64, 0) == 0
        assert board.call("create_mem_from_fd", context, whole.structure.fd, 0, 64, 0) == 0
    finally:
        os.close(pipe)
        os.close(other)
    assert board.call("create_mem_from_phys", context, 0x1000, 0x1000, 64) == 0
    assert board.call("create_mem_from_mb_blk", context, 0x1000, 0) == 0


@pytest.mark.parametrize("size", [0, 1 << 32])
def test_sizes_that_are_refused(size: int) -> None:
    board = Board()
    context = board.init(MODEL)
    assert board.call("create_mem2", context, size, 0) == 0
    both = AllocationFlag.RKNN_FLAG_MEMORY_CACHEABLE | AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE
    assert board.call("create_mem2", context, 4096, both) == 0


def test_fresh_memory_is_zeroed_and_writable() -> None:
    board = Board()
    memory = board.memory(board.init(MODEL), 5000)
    assert not memory.cpu.any()
    memory.cpu[:] = 1
    assert os.pread(memory.structure.fd, 1, 4999) == b"\x01"
    assert memory.structure.flags == TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE


def test_memory_without_context() -> None:
    board = Board()
    no_context = AllocationFlag.RKNN_MEM_FLAG_ALLOC_NO_CONTEXT
    first, second = (board.memory(0, 4096, no_context) for _ in range(2))
    board.check("destroy_mem", 0, first.address)
    board.check("destroy_mem", board.init(MODEL), second.address)
    assert board.call("create_mem2", 0, 4096, 0) == 0
    owned = board.memory(board.init(MODEL), 4096)
    board.check("destroy_mem", 0, owned.address, code=ErrorCode.RKNN_ERR_CTX_INVALID)


@pytest.mark.parametrize("mode", [0, 4, 0x7FFFFFFF])
def test_unknown_modes_and_memories_are_refused(mode: int) -> None:
    board = Board()
    context = board.init(MODEL)
    memory = board.memory(context, 4096)
    board.sync(memory, mode, context, code=INVALID)
    board.check("mem_sync", context, 0, TO_DEVICE, code=INVALID)
    board.check("mem_sync", context, 0x10, TO_DEVICE, code=INVALID)
    board.check("mem_sync", 0x99, memory.address, TO_DEVICE, code=ErrorCode.RKNN_ERR_CTX_INVALID)
    board.sync(memory, BIDIRECTIONAL, 0)


def test_destroyed_memory_is_refused_everywhere() -> None:
    board = Board()
    io = zero_copy(board, MODEL)
    board.check("destroy_mem", io.context, io.output.address)
    attr = board.native_output(io.context)
    board.check("mem_sync", io.context, io.output.address, TO_DEVICE, code=INVALID)
    board.check("set_io_mem", io.context, io.output.address, ctypes.addressof(attr), code=INVALID)
    board.check("destroy_mem", io.context, io.output.address, code=INVALID)
    board.check("run", io.context, 0, code=ErrorCode.RKNN_ERR_OUTPUT_INVALID)
    new = [board.memory(io.context, 4096) for _ in range(50)]
    assert io.output.address not in {memory.address for memory in new}, (
        "a stale pointer would meet a new memory"
    )


def test_rounds_give_descriptors_back() -> None:
    board = Board()
    context = board.init(MODEL)
    gc.collect()  # other tests' boards
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        whole = board.call("create_mem", context, 8192)
        structure = board.layouts["rknn_tensor_mem"].from_address(whole)
        part = board.call("create_mem_from_fd", context, structure.fd, structure.virt_addr, 64, 64)
        board.check("destroy_mem", context, part)
        board.check("destroy_mem", context, whole)
        board.check("destroy", board.init(MODEL))
    assert len(os.listdir("/proc/self/fd")) == before


def test_inputs_and_outputs_must_be_bound() -> None:
    board = Board()
    context = board.init(MODEL)
    board.check("run", context, 0, code=ErrorCode.RKNN_ERR_INPUT_INVALID)
    attr = board.native_input(context)
    board.bind(context, board.memory(context, attr.size_with_stride), attr)
    board.check("run", context, 0, code=ErrorCode.RKNN_ERR_OUTPUT_INVALID)


def test_bindings_that_are_refused() -> None:
    board = Board()
    context = board.init(MODEL)
    source, result = board.native_input(context), board.native_output(context)
    small, enough = board.memory(context, source.size_with_stride - 1), board.memory(context, 1 << 16)
    board.bind(context, small, source, code=ErrorCode.RKNN_ERR_INPUT_INVALID)
    board.bind(context, small, result, code=ErrorCode.RKNN_ERR_OUTPUT_INVALID)
    board.check("set_io_mem", context, enough.address, 0, code=INVALID)
    board.check("set_io_mem", context, 0, ctypes.addressof(source), code=INVALID)
    for change, value, code in (
        ("index", 1, ErrorCode.RKNN_ERR_INPUT_INVALID),
        ("name", b"nobody", INVALID),
    ):
        wrong = board.native_input(context)
        setattr(wrong, change, value)
        board.bind(context, enough, wrong, code=code)
    for change, value in (("type", TensorType.RKNN_TENSOR_INT64), ("type", 77), ("fmt", 9)):
        wrong = board.native_output(context)
        setattr(wrong, change, value)
        board.bind(context, enough, wrong, code=ErrorCode.RKNN_ERR_OUTPUT_INVALID)


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("fmt", ["NCHW", "NHWC"])
def test_inputs_that_the_npu_converts(dtype: str, fmt: str) -> None:
    """Rows of 3-channel NHWC inputs are padded to w_stride; the copying API takes them without."""
    board = Board()
    model = pack(odd_rows(), "rk3588")
    kind, form = TensorType[f"RKNN_TENSOR_{dtype}"], TensorFormat[f"RKNN_TENSOR_{fmt}"]
    numpy_type = np.dtype(dtype.lower())
    values = np.random.default_rng(1).integers(0, 4, (1, 3, 10, 20)).astype(numpy_type)
    ordered = values if fmt == "NCHW" else values.transpose(0, 2, 3, 1)
    copying = board.init(model)
    board.set_input(copying, ordered.tobytes(), kind, form)
    board.check("run", copying, 0)
    context = board.init(model)
    attr = board.attr(context, QueryCommand.RKNN_QUERY_INPUT_ATTR)
    attr.type, attr.fmt = kind, form
    padded = np.zeros((1, 10, 32, 3), numpy_type)
    padded[:, :, :20] = values.transpose(0, 2, 3, 1)
    data = values.tobytes() if fmt == "NCHW" else padded.tobytes()
    memory = board.memory(context, len(data))
    memory.cpu[:] = np.frombuffer(data, np.uint8)
    board.bind(context, memory, attr)
    output = board.attr(context, QueryCommand.RKNN_QUERY_OUTPUT_ATTR)
    result = board.memory(context, output.size_with_stride)
    board.bind(context, result, output)
    board.check("run", context, 0)
    assert [result.cpu.tobytes()] == board.outputs(copying)
    short = board.memory(context, len(data) - 1)
    board.bind(context, short, attr, code=ErrorCode.RKNN_ERR_INPUT_INVALID)


@pytest.mark.parametrize("model", [chain, classifier, odd_rows])
def test_outputs_in_other_forms(model: object) -> None:
    board = Board()
    packed = pack(model(), "rk3588")  # type: ignore[operator]
    io = zero_copy(board, packed)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 8)
    copying = board.init(packed)
    board.set_input(copying, io.input.cpu.tobytes(), pass_through=1)
    board.check("run", copying, 0)
    stored = board.outputs(copying)[0]
    real = board.outputs(copying, want_float=True)[0]
    logical = board.attr(io.context, QueryCommand.RKNN_QUERY_OUTPUT_ATTR)
    others = board.query(io.context, QueryCommand.RKNN_QUERY_IN_OUT_NUM, "rknn_input_output_num").n_output
    for index in range(1, others):
        attr = board.native_output(io.context, index)
        board.bind(io.context, board.memory(io.context, attr.size_with_stride), attr)
    for dtype, expected in ((TensorType.RKNN_TENSOR_INT8, stored), (TensorType.RKNN_TENSOR_FLOAT32, real)):
        logical.type = dtype
        memory = board.memory(io.context, len(expected))
        board.bind(io.context, memory, logical)
        io.run()
        assert memory.cpu.tobytes() == expected


def test_the_mini_runtime_converts_nothing_but_uint8_inputs() -> None:
    board = Board("rv1106")
    context = board.init(pack(odd_rows(), "rv1106"))
    memory = board.memory(context, 1 << 16)
    output = board.attr(context, QueryCommand.RKNN_QUERY_OUTPUT_ATTR)
    board.bind(context, memory, output)
    for change, value in (("type", TensorType.RKNN_TENSOR_FLOAT32), ("fmt", TensorFormat.RKNN_TENSOR_NCHW)):
        wrong = board.attr(context, QueryCommand.RKNN_QUERY_OUTPUT_ATTR)
        setattr(wrong, change, value)
        board.bind(context, memory, wrong, code=ErrorCode.RKNN_ERR_OUTPUT_INVALID)
    pixels = board.attr(context, QueryCommand.RKNN_QUERY_INPUT_ATTR)
    pixels.type = TensorType.RKNN_TENSOR_UINT8
    board.bind(context, memory, pixels)
    pixels.type = TensorType.RKNN_TENSOR_FLOAT32
    board.bind(context, memory, pixels, code=ErrorCode.RKNN_ERR_INPUT_INVALID)


def history(seed: int) -> bytes:
    """What an illegal program sees, which depends on what the caches do."""
    board = Board(seed=seed)
    io = zero_copy(board, MODEL, NO_FLUSH)
    seen = b""
    for number in range(5):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        seen += io.output.cpu.tobytes()
    return seen


def test_equal_seeds_give_equal_runs_and_others_differ() -> None:
    assert history(1) == history(1)
    assert len({history(seed) for seed in range(4)}) == 4


def test_memory_of_one_context_serves_another() -> None:
    board = Board()
    first = zero_copy(board, MODEL)
    second = bound(board, board.init(MODEL))
    board.bind(second.context, first.input, board.native_input(second.context))
    first.input.cpu[:] = random_bytes(len(first.input.cpu), 1)
    first.run()
    second.run()
    np.testing.assert_array_equal(first.output.cpu, second.output.cpu)
