"""An emulated board as the tests use it: every call goes through C function pointers, as the agent's do."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_rknpu.agent.abi import (
    PROTOTYPES,
    ErrorCode,
    InitFlag,
    MemorySyncMode,
    QueryCommand,
    TensorFormat,
    TensorType,
    concrete,
    layouts,
)
from pytest_rknpu.emulator import open_library
from pytest_rknpu.inventory.socs import find_soc

TO_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_TO_DEVICE
FROM_DEVICE = MemorySyncMode.RKNN_MEMORY_SYNC_FROM_DEVICE
BIDIRECTIONAL = MemorySyncMode.RKNN_MEMORY_SYNC_BIDIRECTIONAL
NO_FLUSH = (
    InitFlag.RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE | InitFlag.RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE
)
Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Mem:
    """A memory: the address of its C structure, and what the CPU sees of it (from its own offset on)."""

    address: int
    structure: Any
    cpu: npt.NDArray[np.uint8]


class Board:
    """Calls functions of one emulated library by name; ``check`` raises AssertionError for other codes."""

    def __init__(self, soc: str = "rk3588", **options: Any) -> None:
        self.library = open_library({"soc": soc, **options})
        self.soc = find_soc(soc)
        self.layouts = layouts(64, self.soc.context_bits)
        self._functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        if name not in self._functions:
            prototype = PROTOTYPES[name]
            kinds = [concrete(kind, self.layouts) for kind in (prototype.result, *prototype.arguments)]
            address = self.library.symbol(name)
            assert address, f"{name} is not exported"
            self._functions[name] = ctypes.CFUNCTYPE(*kinds)(address)
        return self._functions[name]

    def call(self, name: str, *arguments: int) -> int:
        """The result of ``rknn_<name>``, a code or an address."""
        return int(self.function(f"rknn_{name}")(*arguments))

    def check(self, name: str, *arguments: int, code: ErrorCode = ErrorCode.RKNN_SUCC) -> None:
        actual = self.call(name, *arguments)
        assert actual == code, f"rknn_{name} returned {actual}, not {code!r}"

    def init(
        self, model: bytes, flags: int = 0, code: ErrorCode = ErrorCode.RKNN_SUCC, extend: int = 0
    ) -> int:
        """The new context's handle (0 where it was refused)."""
        handle = self.layouts.context(0)
        buffer = ctypes.create_string_buffer(model, len(model))
        self.check(
            "init",
            ctypes.addressof(handle),
            ctypes.addressof(buffer),
            len(model),
            flags,
            extend,
            code=code,
        )
        return int(handle.value)

    def duplicate(self, context: int) -> int:
        source, copy = self.layouts.context(context), self.layouts.context(0)
        self.check("dup_context", ctypes.addressof(source), ctypes.addressof(copy))
        return int(copy.value)

    def query(self, context: int, command: QueryCommand, structure: str, index: int = 0) -> Any:
        info = self.layouts[structure]()
        if structure == "rknn_tensor_attr":
            info.index = index
        self.check("query", context, command, ctypes.addressof(info), ctypes.sizeof(info))
        return info

    def attr(self, context: int, command: QueryCommand, index: int = 0) -> Any:
        return self.query(context, command, "rknn_tensor_attr", index)

    def native_input(self, context: int, index: int = 0) -> Any:
        attr = self.attr(context, QueryCommand.RKNN_QUERY_NATIVE_INPUT_ATTR, index)
        attr.pass_through = 1
        return attr

    def native_output(self, context: int, index: int = 0) -> Any:
        return self.attr(context, QueryCommand.RKNN_QUERY_NATIVE_OUTPUT_ATTR, index)

    def sizes(self, context: int) -> Any:
        return self.query(context, QueryCommand.RKNN_QUERY_MEM_SIZE, "rknn_mem_size")

    def memory(self, context: int, size: int, alloc_flags: int | None = None) -> Mem:
        """A memory of ``size`` bytes."""
        if alloc_flags is None:
            address = self.call("create_mem", context, size)
        else:
            address = self.call("create_mem2", context, size, alloc_flags)
        assert address
        return self.mapped(address)

    def mapped(self, address: int) -> Mem:
        structure = self.layouts["rknn_tensor_mem"].from_address(address)
        first = structure.virt_addr + structure.offset
        return Mem(
            address, structure, np.frombuffer((ctypes.c_uint8 * structure.size).from_address(first), np.uint8)
        )

    def imported(self, context: int, source: Mem, size: int, offset: int) -> Mem | None:
        fd, base = source.structure.fd, source.structure.virt_addr
        address = self.call("create_mem_from_fd", context, fd, base, size, offset)
        return self.mapped(address) if address else None

    def bind(self, context: int, memory: Mem, attr: Any, code: ErrorCode = ErrorCode.RKNN_SUCC) -> None:
        self.check("set_io_mem", context, memory.address, ctypes.addressof(attr), code=code)

    def sync(self, memory: Mem, mode: int, context: int, code: ErrorCode = ErrorCode.RKNN_SUCC) -> None:
        self.check("mem_sync", context, memory.address, mode, code=code)

    def set_input(
        self,
        context: int,
        data: bytes,
        dtype: TensorType = TensorType.RKNN_TENSOR_INT8,
        fmt: TensorFormat = TensorFormat.RKNN_TENSOR_NCHW,
        *,
        index: int = 0,
        pass_through: int = 0,
        code: ErrorCode = ErrorCode.RKNN_SUCC,
    ) -> None:
        buffer = ctypes.create_string_buffer(data, len(data))
        given = self.layouts["rknn_input"](
            index=index,
            buf=ctypes.addressof(buffer),
            size=len(data),
            pass_through=pass_through,
            type=dtype,
            fmt=fmt,
        )
        self.check("inputs_set", context, 1, ctypes.addressof(given), code=code)

    def outputs(self, context: int, count: int = 1, *, want_float: bool = False) -> list[bytes]:
        wanted = (self.layouts["rknn_output"] * count)()
        for index, output in enumerate(wanted):
            output.index, output.want_float = index, want_float
        self.check("outputs_get", context, count, ctypes.addressof(wanted), 0)
        data = [ctypes.string_at(output.buf, output.size) for output in wanted]
        self.check("outputs_release", context, count, ctypes.addressof(wanted))
        return data


@dataclass(frozen=True)
class ZeroCopy:
    """A context with its first input and output bound natively to memories of their own."""

    board: Board
    context: int
    input: Mem
    output: Mem

    def run(self) -> None:
        self.board.check("run", self.context, 0)

    def push(self, data: npt.NDArray[np.uint8]) -> None:
        """The CPU writes the input and hands it over."""
        self.input.cpu[:] = data
        self.board.sync(self.input, TO_DEVICE, self.context)

    def pull(self) -> npt.NDArray[np.uint8]:
        """The CPU takes the output over and reads it."""
        self.board.sync(self.output, FROM_DEVICE, self.context)
        return self.output.cpu.copy()


def zero_copy(board: Board, model: bytes, flags: int = 0, alloc_flags: int | None = None) -> ZeroCopy:
    """Bind input 0 and output 0 of a new context natively."""
    return bound(board, board.init(model, flags), alloc_flags)


def bound(board: Board, context: int, alloc_flags: int | None = None) -> ZeroCopy:
    """Bind input 0 and output 0 of ``context`` natively to new memories."""
    source, result = board.native_input(context), board.native_output(context)
    memories = [board.memory(context, attr.size_with_stride, alloc_flags) for attr in (source, result)]
    for memory, attr in zip(memories, (source, result), strict=True):
        board.bind(context, memory, attr)
    return ZeroCopy(board, context, *memories)


def copied(board: Board, model: bytes, data: bytes) -> bytes:
    """Output 0 (int8, NCHW) for native bytes of input 0, by the copying API and a fresh context."""
    context = board.init(model)
    board.set_input(context, data, pass_through=1)
    board.check("run", context, 0)
    (output,) = board.outputs(context)
    board.check("destroy", context)
    return output


def channels_first(native: npt.NDArray[np.uint8], attr: Any, channels: int) -> Int8:
    """The (1, C, H, W) int8 array in NC1HWC2 bytes."""
    _, blocks, height, width, atom = attr.dims[:5]
    values = native.view(np.int8).reshape(1, blocks, height, width, atom).transpose(0, 1, 4, 2, 3)
    return values.reshape(1, blocks * atom, height, width)[:, :channels]


def random_bytes(size: int, seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
