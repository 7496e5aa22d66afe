"""Each choice changes something that the C functions show; the default is the other answer."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest
from emulated_board import TO_DEVICE, Board, channels_first, copied, random_bytes, zero_copy
from qdq_models import odd_rows, one_convolution

from pytest_rknpu.agent.abi import AllocationFlag, InitFlag, QueryCommand, TensorType
from pytest_rknpu.emulator import FAULTS, pack
from pytest_rknpu.emulator.choices import CHOICES

MODEL = pack(one_convolution(), "rk3588")
ROUNDS = 30


def fresh_memory(board: Board) -> bool:
    return bool(board.memory(board.init(MODEL), 64).cpu.any())


def padding(board: Board) -> bool:
    """Of an output of 8 channels, which NC1HWC2 fills up to 16."""
    io = zero_copy(board, pack(odd_rows(), "rk3588"))
    io.run()
    shape = board.native_output(io.context).dims[:5]
    assert io.output.cpu.size % shape[4] == 0
    return bool(io.output.cpu.reshape(-1, shape[4])[:, -1].any())


def imports_within_pages(board: Board) -> bool:
    context = board.init(MODEL)
    whole = board.memory(context, 8192)
    assert board.imported(context, whole, 4096, 4096) is not None
    return board.imported(context, whole, 4096, 64) is None


def imports_by_run(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    size = len(io.input.cpu)
    part = board.imported(io.context, board.memory(io.context, size), size, 0)
    assert part is not None
    board.bind(io.context, part, board.native_input(io.context))
    wrong = False
    for number in range(ROUNDS):
        part.cpu[:] = random_bytes(size, number)
        io.run()
        actual = channels_first(io.output.cpu, board.native_output(io.context), 16)
        wrong |= actual.tobytes() != copied(board, MODEL, part.cpu.tobytes())
    return wrong


def needless_sync(board: Board) -> bool:
    context = board.init(MODEL)
    memory = board.memory(context, 64, AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE)
    return board.call("mem_sync", context, memory.address, TO_DEVICE) != 0


def sizes_without_flag(board: Board) -> bool:
    board.sizes(board.init(MODEL, InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE))
    info = board.layouts["rknn_mem_size"]()
    command = QueryCommand.RKNN_QUERY_MEM_SIZE
    return board.call("query", board.init(MODEL), command, ctypes.addressof(info), ctypes.sizeof(info)) != 0


def foreign_memory(board: Board) -> bool:
    first, second = board.init(MODEL), board.init(MODEL)
    attr = board.native_input(second)
    memory = board.memory(first, attr.size_with_stride)
    return board.call("set_io_mem", second, memory.address, ctypes.addressof(attr)) != 0


def pixels_of_many_channels(board: Board) -> bool:
    context = board.init(MODEL)
    attr = board.attr(context, QueryCommand.RKNN_QUERY_INPUT_ATTR)
    attr.type, attr.pass_through = TensorType.RKNN_TENSOR_UINT8, 0
    memory = board.memory(context, attr.size_with_stride)
    return board.call("set_io_mem", context, memory.address, ctypes.addressof(attr)) != 0


def converted_output(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    board.bind(io.context, io.output, board.attr(io.context, QueryCommand.RKNN_QUERY_OUTPUT_ATTR))
    wrong = False
    for number in range(ROUNDS):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        wrong |= io.output.cpu.tobytes() != copied(board, MODEL, io.input.cpu.tobytes())
    return wrong


def small_internal_at_run(board: Board) -> bool:
    io = zero_copy(board, MODEL, InitFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
    small = board.memory(io.context, 64)
    accepted = board.call("set_internal_mem", io.context, small.address) == 0
    return accepted and board.call("run", io.context, 0) != 0


def unknown_core_mask(board: Board) -> bool:
    return board.call("set_core_mask", board.init(MODEL), 1 << 5) == 0


PROBES: dict[str, Callable[[Board], bool]] = {
    "sound-core-mask-falls-back": unknown_core_mask,
    "sound-fresh-memory-not-zero": fresh_memory,
    "sound-padding-not-zero": padding,
    "sound-imports-at-pages-only": imports_within_pages,
    "sound-imports-not-maintained": imports_by_run,
    "sound-needless-sync-refused": needless_sync,
    "sound-sizes-need-flag": sizes_without_flag,
    "sound-memory-of-one-context": foreign_memory,
    "sound-pixels-for-images-only": pixels_of_many_channels,
    "sound-converted-output-not-maintained": converted_output,
    "sound-small-internal-refused-by-run": small_internal_at_run,
}


def test_every_choice_is_probed() -> None:
    assert set(PROBES) == {choice.name for choice in CHOICES}


@pytest.mark.parametrize("choice", PROBES)
def test_each_choice_can_be_observed(choice: str) -> None:
    assert PROBES[choice](Board(seed=1, faults=[choice]))
    assert not PROBES[choice](Board(seed=1))


def test_choices_are_told_from_faults() -> None:
    """By their names too: they stand where seeded faults are shown."""
    chosen = {choice.name for choice in CHOICES}
    for name, fault in FAULTS.items():
        assert (name in chosen) == (fault.layer == "choice") == name.startswith("sound-")
        assert (name in chosen or fault.layer == "loss") == (not fault.requirements)


def test_the_documentation_lists_every_choice() -> None:
    text = (Path(__file__).parents[2] / "docs/emulator.md").read_text()
    for choice in CHOICES:
        assert f"| `{choice.name}` | {choice.description} |" in text
