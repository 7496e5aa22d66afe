"""Each fault changes something that the C functions show, and a sound board shows none of it."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from emulated_board import (
    BIDIRECTIONAL,
    FROM_DEVICE,
    NO_FLUSH,
    TO_DEVICE,
    Board,
    Mem,
    ZeroCopy,
    bound,
    channels_first,
    copied,
    random_bytes,
    zero_copy,
)
from qdq_models import chain, odd_rows, one_convolution

from pytest_rknpu.agent.abi import AllocationFlag, ErrorCode, InitFlag
from pytest_rknpu.emulator import FAULTS as ALL_FAULTS
from pytest_rknpu.emulator import make_root, pack
from pytest_rknpu.emulator.faults import parse_faults
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.verdict import REQUIREMENTS

MODEL = pack(one_convolution(), "rk3588")
ROUNDS = 30

FAULTS = {name: fault for name, fault in ALL_FAULTS.items() if fault.layer not in ("choice", "loss")}
Noticed = bool


def is_wrong(io: ZeroCopy, data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> bool:
    """Whether the CPU sees another output than the copying API gives for native input ``data``."""
    actual = channels_first(io.output.cpu, io.board.native_output(io.context), 16)
    return bool(actual.tobytes() != copied(io.board, MODEL, data.tobytes()))


def hand_overs(
    board: Board, to_device: int = TO_DEVICE, from_device: int = FROM_DEVICE, size: int | None = None
) -> bool:
    """Any wrong result of synced runs; ``size`` limits how many input bytes change from run to run."""
    io = zero_copy(board, MODEL, NO_FLUSH)
    data = random_bytes(len(io.input.cpu), 0)
    wrong = False
    for number in range(ROUNDS):
        changed = len(data) if size is None else size
        data[-changed:] = random_bytes(changed, number)
        io.input.cpu[:] = data
        board.sync(io.input, to_device, io.context)
        io.run()
        board.sync(io.output, from_device, io.context)
        wrong |= is_wrong(io, data)
    return wrong


def run_alone(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    wrong = False
    for number in range(ROUNDS):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        wrong |= is_wrong(io, io.input.cpu)
    return wrong


def edits_between(board: Board) -> bool:
    """One memory is A's output and B's input, with BIDIRECTIONAL before and after the CPU's edit."""
    first, second = (zero_copy(board, MODEL, NO_FLUSH) for _ in range(2))
    board.bind(second.context, first.output, board.native_input(second.context))
    wrong = False
    for number in range(ROUNDS):
        first.input.cpu[:] = random_bytes(len(first.input.cpu), number)
        board.sync(first.input, BIDIRECTIONAL, first.context)
        first.run()
        board.sync(first.output, BIDIRECTIONAL, first.context)
        wrong |= is_wrong(first, first.input.cpu)
        first.output.cpu[1000:1040] = number
        edited = first.output.cpu.copy()
        board.sync(first.output, BIDIRECTIONAL, first.context)
        second.run()
        board.sync(second.output, FROM_DEVICE, second.context)
        wrong |= is_wrong(second, edited)
    return wrong


def bidirectional(board: Board) -> bool:
    return hand_overs(board, BIDIRECTIONAL, BIDIRECTIONAL)


def last_line(board: Board) -> bool:
    return hand_overs(board, size=64)


def imported_part(board: Board) -> bool:
    io = zero_copy(board, MODEL, NO_FLUSH)
    size = len(io.input.cpu)
    whole = board.memory(io.context, size + 4096)
    part = board.imported(io.context, whole, size, 4096)
    assert part is not None
    board.bind(io.context, part, board.native_input(io.context))
    wrong = False
    for number in range(ROUNDS):
        part.cpu[:] = random_bytes(size, number)
        board.sync(part, TO_DEVICE, io.context)
        io.run()
        board.sync(io.output, FROM_DEVICE, io.context)
        wrong |= is_wrong(io, part.cpu)
    return wrong


def dirty_output(board: Board) -> bool:
    io = zero_copy(board, MODEL, NO_FLUSH)
    wrong = False
    for number in range(ROUNDS):
        io.output.cpu[:] = number
        board.sync(io.output, TO_DEVICE, io.context)
        io.push(random_bytes(len(io.input.cpu), number))
        io.run()
        io.pull()
        wrong |= is_wrong(io, io.input.cpu)
    return wrong


def neighbours(board: Board) -> bool:
    """An import within a line is accepted and loses its neighbour's bytes."""
    context = board.init(MODEL)
    whole = board.memory(context, 8192)
    part = board.imported(context, whole, 4096, 16)
    if part is None:
        return False
    whole.cpu[:16] = 0xC3
    board.sync(part, FROM_DEVICE, context)
    return bool((whole.cpu[:16] != 0xC3).any())


def non_cacheable(board: Board) -> bool:
    io = zero_copy(board, MODEL, NO_FLUSH, AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE)
    wrong = False
    for number in range(ROUNDS):
        io.input.cpu[:] = random_bytes(len(io.input.cpu), number)
        io.run()
        wrong |= is_wrong(io, io.input.cpu)
    return wrong


def undersized_internal(board: Board) -> bool:
    """Accepted, and the run writes behind it."""
    model = pack(chain(), "rk3588")
    io = zero_copy(board, model, InitFlag.RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
    needed = board.sizes(io.context).total_internal_size
    room = board.memory(io.context, needed + 4096)
    room.cpu[:] = 0xC5
    board.sync(room, TO_DEVICE, io.context)
    small = board.imported(io.context, room, needed // 2, 0)
    assert small is not None
    if board.call("set_internal_mem", io.context, small.address) != 0:
        return False
    io.run()
    board.sync(room, FROM_DEVICE, io.context)
    return bool((room.cpu[needed // 2 :] != 0xC5).any())


def repeated_runs(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 1)
    outputs = set()
    for _ in range(ROUNDS):
        io.run()
        outputs.add(io.output.cpu.tobytes())
    return len(outputs) > 1


def duplicates(board: Board) -> bool:
    """The duplicate's run changes the parent's internal buffer, which is its own on a sound board."""
    parent = zero_copy(board, MODEL)
    duplicate = bound(board, board.duplicate(parent.context))
    state = board.library._state
    internal = state.context(parent.context).internal
    assert internal is not None
    parent.run()
    before = internal.read(0, internal.size).copy()
    duplicate.input.cpu[:] = 77
    duplicate.run()
    return bool((internal.read(0, internal.size) != before).any())


def descriptors(board: Board) -> bool:
    context = board.init(MODEL)
    gc.collect()  # other tests' boards
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(ROUNDS):
        board.check("destroy_mem", context, board.memory(context, 4096).address)
    return len(os.listdir("/proc/self/fd")) > before


def prefills(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 1)
    outputs = set()
    for prefill in (0xA5, 0x5A):
        io.output.cpu[:] = prefill
        board.sync(io.output, TO_DEVICE, io.context)
        io.run()
        outputs.add(io.output.cpu.tobytes())
    return len(outputs) > 1


def behind_the_output(board: Board) -> bool:
    """The bytes of a larger memory behind the part of it that is the output."""
    io = zero_copy(board, MODEL)
    size = len(io.output.cpu)
    room = board.memory(io.context, size + 4096)
    room.cpu[:] = 0xC5
    board.sync(room, TO_DEVICE, io.context)
    output = board.imported(io.context, room, size, 0)
    assert output is not None
    board.bind(io.context, output, board.native_output(io.context))
    io.run()
    board.sync(room, FROM_DEVICE, io.context)
    return bool((room.cpu[size:] != 0xC5).any())


def sync_without_context(board: Board) -> bool:
    memory = board.memory(board.init(MODEL), 64)
    return board.call("mem_sync", 0, memory.address, TO_DEVICE) != 0


def half_an_input(board: Board) -> bool:
    context = board.init(MODEL)
    half = board.native_input(context).size // 2
    structure = board.layouts["rknn_input"]
    buffer = ctypes.create_string_buffer(half)
    given = structure(buf=ctypes.addressof(buffer), size=half, pass_through=1)
    return board.call("inputs_set", context, 1, ctypes.addressof(given)) == 0


def core_masks(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    io.input.cpu[:] = random_bytes(len(io.input.cpu), 1)
    outputs = set()
    for mask in (0, 1, 2, 7):
        board.check("set_core_mask", io.context, mask)
        io.run()
        outputs.add(io.output.cpu.tobytes())
    return len(outputs) > 1


def truncated(board: Board) -> bool:
    handles = [board.layouts.context(0) for _ in range(2)]
    return any(
        board.call("init", *pointers(handle, MODEL[:length]), 0, 0) == 0
        for handle, length in zip(handles, (len(MODEL) - 1, len(MODEL) * 3 // 4), strict=True)
    )


def foreign(board: Board) -> bool:
    handle = board.layouts.context(0)
    return board.call("init", *pointers(handle, pack(one_convolution(), "rk3566")), 0, 0) == 0


def pointers(handle: object, data: bytes) -> tuple[int, int, int]:
    buffer = ctypes.create_string_buffer(data, len(data))
    KEPT.append(buffer)
    return ctypes.addressof(handle), ctypes.addressof(buffer), len(data)  # type: ignore[arg-type]


KEPT: list[object] = []


def destroyed(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    board.check("destroy", io.context)
    return board.call("run", io.context, 0) == 0


def strides(board: Board) -> bool:
    """The copying API against itself: converted int8 and native bytes passed through, with padded rows."""
    model = pack(odd_rows(), "rk3588")
    values = np.random.default_rng(1).integers(-128, 128, (1, 3, 10, 20)).astype(np.int8)
    padded = np.zeros((1, 10, 32, 3), np.int8)
    padded[:, :, :20] = values.transpose(0, 2, 3, 1)
    outputs = []
    for data, pass_through in ((values, 0), (padded, 1)):
        context = board.init(model)
        board.set_input(context, data.tobytes(), pass_through=pass_through)
        board.check("run", context, 0)
        outputs += board.outputs(context)
    return outputs[0] != outputs[1]


def unpublished(board: Board, context: int, memory: Mem, times: int = 1) -> bool:
    """Any byte that the CPU wrote, synced TO_DEVICE, and the NPU does not see."""
    part = board.library._state.memory(memory.address).part
    missing = False
    for number in range(times):
        memory.cpu[:] = random_bytes(len(memory.cpu), number)
        board.sync(memory, TO_DEVICE, context)
        seen = part.storage.device_read(part.offset, part.offset + part.size)
        missing |= bool((seen != memory.cpu).any())
    return missing


def odd_size(board: Board) -> bool:
    context = board.init(MODEL)
    return unpublished(board, context, board.memory(context, 100))


def large_memory(board: Board) -> bool:
    context = board.init(MODEL)
    return unpublished(board, context, board.memory(context, 1 << 15))


def many_syncs(board: Board) -> bool:
    context = board.init(MODEL)
    return unpublished(board, context, board.memory(context, 64), times=600)


def second_memory(board: Board) -> bool:
    context = board.init(MODEL)
    _, second = board.memory(context, 64), board.memory(context, 64)
    return unpublished(board, context, second)


def imported_memory(board: Board) -> bool:
    context = board.init(MODEL)
    part = board.imported(context, board.memory(context, 4096), 64, 0)
    assert part is not None
    return unpublished(board, context, part)


def a_thousand_runs(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    data = [random_bytes(len(io.input.cpu), number) for number in range(2)]
    sound = []
    for number in range(1000):
        io.push(data[number % 2])
        io.run()
        sound.append(io.pull().tobytes())
    return sound[999] != sound[1]


def parent_of_a_duplicate(board: Board) -> bool:
    parent = zero_copy(board, MODEL)
    parent.push(random_bytes(len(parent.input.cpu), 1))
    outputs = []
    for _ in range(2):
        parent.run()
        outputs.append(parent.pull().tobytes())
        board.duplicate(parent.context)
    return outputs[0] != outputs[1]


def given_weights(board: Board) -> bool:
    context = board.init(MODEL, InitFlag.RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    weights = board.memory(context, board.sizes(context).total_weight_size)
    board.check("set_weight_mem", context, weights.address)
    return not weights.cpu.any()


def internal_size(board: Board) -> bool:
    context = board.init(MODEL)
    model = board.library._state.context(context).model
    return bool(board.sizes(context).total_internal_size < model.internal_size)


def row_stride(board: Board) -> bool:
    context = board.init(pack(odd_rows(), "rk3588"))
    return bool(board.native_input(context).w_stride != 32)


def descriptors_of_refusals(board: Board) -> bool:
    context = board.init(MODEL)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(ROUNDS):
        assert board.call("set_core_mask", context, 1 << 5) != 0
    return len(os.listdir("/proc/self/fd")) > before


def unknown_core_mask(board: Board) -> bool:
    return board.call("set_core_mask", board.init(MODEL), 1 << 5) == 0


def destroyed_output(board: Board) -> bool:
    io = zero_copy(board, MODEL)
    board.check("destroy_mem", io.context, io.output.address)
    return board.call("run", io.context, 0) == 0


def destroyed_import(board: Board) -> bool:
    """The memory that was imported has its bytes no more."""
    context = board.init(MODEL)
    whole = board.memory(context, 4096)
    whole.cpu[:] = 7
    part = board.imported(context, whole, 4096, 0)
    assert part is not None
    board.check("destroy_mem", context, part.address)
    return bool((whole.cpu != 7).any())


PROBES: dict[str, Callable[[Board], Noticed]] = {
    "sync-range-rounded-down": odd_size,
    "sync-stops-at-16-kib": large_memory,
    "sync-hole-at-1-kib": large_memory,
    "sync-of-another-memory": second_memory,
    "sync-one-in-500-lost": many_syncs,
    "sync-of-imports-ignored": imported_memory,
    "one-result-in-1000-stale": a_thousand_runs,
    "dup-moves-weights": parent_of_a_duplicate,
    "given-weights-not-filled": given_weights,
    "internal-size-under-reported": internal_size,
    "row-stride-wrong": row_stride,
    "descriptors-leak-on-errors": descriptors_of_refusals,
    "core-mask-ignored": unknown_core_mask,
    "destroyed-memory-accepted": destroyed_output,
    "import-destroy-frees-memory": destroyed_import,
    "sync-to-device-dropped": hand_overs,
    "sync-from-device-dropped": hand_overs,
    "sync-directions-swapped": hand_overs,
    "sync-bidirectional-one-side": bidirectional,
    "sync-bidirectional-one-side:does=from-device": bidirectional,
    "sync-last-line-missing": last_line,
    "sync-offset-ignored": imported_part,
    "late-write-back": dirty_output,
    "edge-neighbours-lost": neighbours,
    "run-flush-missing": run_alone,
    "run-flush-missing:side=inputs": run_alone,
    "run-flush-missing:side=outputs": run_alone,
    "non-cacheable-is-cached": non_cacheable,
    "stale-previous-frame": hand_overs,
    "internal-overlaps-output": hand_overs,
    "undersized-internal-accepted": undersized_internal,
    "weights-scribbled": repeated_runs,
    "dup-shares-activations": duplicates,
    "descriptors-leak": descriptors,
    "output-incomplete": prefills,
    "output-overrun": behind_the_output,
    "null-context-refused": sync_without_context,
    "input-size-unchecked": half_an_input,
    "core-mask-changes-result": core_masks,
    "truncated-model-accepted": truncated,
    "foreign-model-accepted": foreign,
    "destroyed-context-accepted": destroyed,
    "copying-ignores-stride": strides,
}
# Seen otherwise, by tests of their own below.
SEEN_ELSEWHERE = {"bad-argument-crashes", "error-line-with-success", "npu-node-missing", "wrong-device-tree"}


def test_every_fault_is_probed() -> None:
    assert {name.partition(":")[0] for name in PROBES} | SEEN_ELSEWHERE == set(FAULTS)


@pytest.mark.parametrize("fault", PROBES)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_fault_can_be_observed(fault: str, seed: int) -> None:
    assert PROBES[fault](Board(seed=seed, faults=[fault]))


@pytest.mark.parametrize("probe", dict.fromkeys([*PROBES.values(), edits_between]))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sound_board_shows_none(probe: Callable[[Board], Noticed], seed: int) -> None:
    assert not probe(Board(seed=seed))


@pytest.mark.parametrize("does", ["to-device", "from-device"])
def test_half_a_bidirectional_sync_is_seen_between_two_models(does: str) -> None:
    assert edits_between(Board(faults=[f"sync-bidirectional-one-side:does={does}"]))


@pytest.mark.parametrize("arguments", ["0, 1", "memory, 77"])
def test_a_bad_argument_ends_the_process(arguments: str) -> None:
    code = (
        "from emulated_board import Board; from test_emulator_faults import MODEL\n"
        "board = Board(faults=['bad-argument-crashes']); context = board.init(MODEL)\n"
        "memory = board.memory(context, 64).address\n"
        f"board.call('mem_sync', context, {arguments})\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=60, check=False)
    assert done.returncode == -signal.SIGSEGV


def test_an_error_line_beside_success(capfd: pytest.CaptureFixture[str]) -> None:
    io = zero_copy(Board(faults=["error-line-with-success"]), MODEL)
    io.run()
    assert "E RKNN: [" in capfd.readouterr().err
    zero_copy(Board(), MODEL).run()
    assert capfd.readouterr().err == ""


def compatible(folder: Path) -> list[str]:
    return (folder / "proc/device-tree/compatible").read_text().split("\0")


def npu_nodes(folder: Path) -> list[str]:
    uevents = folder.glob("sys/class/drm/*/device/uevent")
    return [file.parent.parent.name for file in uevents if "DRIVER=RKNPU" in file.read_text()]


def test_the_system_faults_show_in_the_root(tmp_path: Path) -> None:
    sound, no_node, other = (tmp_path / name for name in ("sound", "no node", "other"))
    make_root(sound, "rk3588")
    make_root(no_node, "rk3588", faults=["npu-node-missing"])
    make_root(other, "rk3588", faults=["wrong-device-tree", "sync-last-line-missing"])
    assert "rockchip,rk3588" in compatible(sound)
    assert "rockchip,rk3588" not in compatible(other)
    assert len(npu_nodes(sound)) == len(npu_nodes(other)) == 1
    assert npu_nodes(no_node) == []


def test_faults_add_up() -> None:
    board = Board(faults=["sync-to-device-dropped", "core-mask-changes-result", "sync-from-device-dropped"])
    assert hand_overs(board)
    assert core_masks(board)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ("no-such-fault", "unknown fault 'no-such-fault'; known: .*late-write-back"),
        ("run-flush-missing:side=left", "it takes side=both|inputs|outputs"),
        ("run-flush-missing:edge=both", "has no 'edge=both'"),
        ("late-write-back:rate=1", "no parameters"),
    ],
)
def test_unknown_faults_and_parameters_are_refused(chosen: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parse_faults([chosen])


def test_the_table_is_whole() -> None:
    for name, fault in FAULTS.items():
        assert name == fault.name
        assert fault.layer in {"cache", "driver", "runtime", "hardware", "system"}
        assert fault.description
        assert fault.requirements
        assert set(fault.requirements) <= set(REQUIREMENTS), name


@pytest.mark.parametrize(
    "options",
    [{}, {"soc": "rk3588", "speed": 3}, {"soc": "rk1808"}, {"soc": "rk3588", "runtime_version": "newest"}],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    from pytest_rknpu.emulator import open_library

    with pytest.raises(ConfigurationError):
        open_library(options)


def test_destroyed_contexts_have_the_right_code() -> None:
    board = Board()
    io = zero_copy(board, MODEL)
    board.check("destroy", io.context)
    board.check("run", io.context, 0, code=ErrorCode.RKNN_ERR_CTX_INVALID)


def test_the_documentation_lists_every_fault() -> None:
    text = (Path(__file__).parents[2] / "docs/emulator.md").read_text()
    rows = {
        line.split("`")[1]: line
        for line in text.splitlines()
        if line.startswith("| `") and line.count("|") == 5
    }
    documented = {name: row for name, row in rows.items() if name in FAULTS}
    assert set(documented) == set(FAULTS)
    for name, fault in FAULTS.items():
        assert fault.description in documented[name]
        assert all(requirement in documented[name] for requirement in fault.requirements)
