"""The general API through the C functions: rknn_inputs_set, rknn_outputs_get, rknn_outputs_release."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emulated_board import NO_FLUSH, Board, bound, random_bytes
from qdq_models import branches, chain, odd_rows

from pytest_rknpu.agent.abi import ErrorCode, InitFlag, TensorFormat, TensorType
from pytest_rknpu.emulator import pack

MODEL = pack(odd_rows(), "rk3588")
SHAPE = (1, 3, 10, 20)
INPUT_INVALID, OUTPUT_INVALID = ErrorCode.RKNN_ERR_INPUT_INVALID, ErrorCode.RKNN_ERR_OUTPUT_INVALID
INT8, UINT8, FLOAT32 = (
    TensorType.RKNN_TENSOR_INT8,
    TensorType.RKNN_TENSOR_UINT8,
    TensorType.RKNN_TENSOR_FLOAT32,
)
NHWC = TensorFormat.RKNN_TENSOR_NHWC


def stored(seed: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    return np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)


def result(*given: object, **more: object) -> bytes:
    """Output 0 for one input, given as Board.set_input takes it."""
    board = Board()
    context = board.init(MODEL)
    board.set_input(context, *given, **more)  # type: ignore[arg-type]
    board.check("run", context, 0)
    return board.outputs(context)[0]


def test_all_ways_to_give_one_input_agree() -> None:
    values = stored()
    expected = result(values.tobytes())
    padded = np.zeros((1, 10, 32, 3), np.int8)
    padded[:, :, :20] = values.transpose(0, 2, 3, 1)
    real = ((values.astype(np.float32) + 9) / 32).astype(np.float32)
    channels_last = real.transpose(0, 2, 3, 1)
    assert result(values.transpose(0, 2, 3, 1).tobytes(), fmt=NHWC) == expected
    assert result(real.tobytes(), FLOAT32) == expected
    assert result(channels_last.tobytes(), FLOAT32, NHWC) == expected
    assert (
        result(channels_last.astype(np.float16).tobytes(), TensorType.RKNN_TENSOR_FLOAT16, NHWC) == expected
    )
    assert result(padded.tobytes(), pass_through=1) == expected
    assert result(values.transpose(0, 2, 3, 1).tobytes(), pass_through=1) == expected
    assert result(stored(2).tobytes()) != expected


def test_unsigned_bytes_are_real_values() -> None:
    pixels = np.random.default_rng(1).integers(0, 5, SHAPE).astype(np.uint8)
    assert result(pixels.tobytes(), UINT8) == result(pixels.astype(np.float32).tobytes(), FLOAT32)


def test_inputs_may_be_set_once_and_run_often() -> None:
    board = Board()
    context = board.init(MODEL)
    board.set_input(context, stored().tobytes())
    outputs = set()
    for _ in range(3):
        board.check("run", context, 0)
        outputs.update(board.outputs(context))
    assert len(outputs) == 1


def test_float_outputs_are_the_stored_ones_in_real_values() -> None:
    board = Board()
    context = board.init(pack(branches(), "rk3588"))
    board.set_input(context, random_bytes(4 * 256, 1).tobytes())
    board.check("run", context, 0)
    for integers, reals in zip(
        board.outputs(context, 2), board.outputs(context, 2, want_float=True), strict=True
    ):
        expected = (np.frombuffer(integers, np.int8).astype(np.float32) - 3) / np.float32(16)
        np.testing.assert_array_equal(np.frombuffer(reals, np.float32), expected)


def test_outputs_into_the_callers_buffer() -> None:
    board = Board()
    context = board.init(MODEL)
    board.set_input(context, stored().tobytes())
    board.check("run", context, 0)
    buffer = ctypes.create_string_buffer(b"\xaa" * 2000, 2000)
    wanted = board.layouts["rknn_output"](is_prealloc=1, buf=ctypes.addressof(buffer), size=2000)
    board.check("outputs_get", context, 1, ctypes.addressof(wanted), 0)
    assert wanted.size == 1600
    assert buffer.raw[:1600] == board.outputs(context)[0]
    assert buffer.raw[1600:] == b"\xaa" * 400
    board.check("outputs_release", context, 1, ctypes.addressof(wanted))
    wanted.size = 1599
    board.check("outputs_get", context, 1, ctypes.addressof(wanted), 0, code=OUTPUT_INVALID)


def test_outputs_are_released_once() -> None:
    board = Board()
    context = board.init(MODEL)
    board.set_input(context, stored().tobytes())
    board.check("run", context, 0)
    wanted = board.layouts["rknn_output"]()
    board.check("outputs_get", context, 1, ctypes.addressof(wanted), 0)
    board.check("outputs_release", context, 1, ctypes.addressof(wanted))
    arguments = (context, 1, ctypes.addressof(wanted))
    board.check("outputs_release", *arguments, code=ErrorCode.RKNN_ERR_PARAM_INVALID)


@pytest.mark.parametrize(
    ("data", "dtype", "more"),
    [
        (b"\0" * 599, INT8, {}),
        (b"\0" * 601, INT8, {}),
        (b"\0" * 600, FLOAT32, {}),
        (b"", INT8, {}),
        (b"\0" * 600, TensorType.RKNN_TENSOR_INT64, {}),
        (b"\0" * 600, INT8, {"index": 1}),
        (b"\0" * 600, INT8, {"fmt": TensorFormat.RKNN_TENSOR_NC1HWC2}),
        (b"\0" * 959, INT8, {"pass_through": 1}),
    ],
)
def test_inputs_that_are_refused(data: bytes, dtype: TensorType, more: dict[str, int]) -> None:
    board = Board()
    context = board.init(MODEL)
    board.set_input(context, data, dtype, code=INPUT_INVALID, **more)  # type: ignore[arg-type]
    board.check("run", context, 0, code=INPUT_INVALID)
    board.set_input(context, stored().tobytes())
    board.check("run", context, 0)


def test_counts_and_pointers_that_are_refused() -> None:
    board = Board()
    context = board.init(MODEL)
    given = board.layouts["rknn_input"](size=600, type=INT8)
    board.check("inputs_set", context, 1, ctypes.addressof(given), code=INPUT_INVALID)  # its buffer is NULL
    for count, address in ((0, ctypes.addressof(given)), (2, ctypes.addressof(given)), (1, 0)):
        board.check("inputs_set", context, count, address, code=INPUT_INVALID)
    wanted = board.layouts["rknn_output"]()
    board.check("outputs_get", context, 1, ctypes.addressof(wanted), 0, code=OUTPUT_INVALID)  # before a run
    board.set_input(context, stored().tobytes())
    board.check("run", context, 0)
    for count, address in ((0, ctypes.addressof(wanted)), (2, ctypes.addressof(wanted)), (1, 0)):
        board.check("outputs_get", context, count, address, 0, code=OUTPUT_INVALID)
    wanted.index = 1
    board.check("outputs_get", context, 1, ctypes.addressof(wanted), 0, code=OUTPUT_INVALID)


def test_the_flags_forbid_the_general_api() -> None:
    board = Board()
    context = board.init(MODEL, NO_FLUSH)
    invalid = ErrorCode.RKNN_ERR_PARAM_INVALID
    board.set_input(context, stored().tobytes(), code=invalid)
    only_output = board.init(MODEL, InitFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE)
    board.set_input(only_output, stored().tobytes())
    board.check("run", only_output, 0)
    wanted = board.layouts["rknn_output"]()
    board.check("outputs_get", only_output, 1, ctypes.addressof(wanted), 0, code=invalid)


def test_the_two_families_cannot_be_mixed() -> None:
    board = Board()
    io = bound(board, board.init(pack(chain(), "rk3588")))
    invalid = ErrorCode.RKNN_ERR_PARAM_INVALID
    board.set_input(io.context, io.input.cpu.tobytes(), code=invalid)
    io.run()
    wanted = board.layouts["rknn_output"]()
    board.check("outputs_get", io.context, 1, ctypes.addressof(wanted), 0, code=invalid)
