"""What one loaded runtime library knows: its contexts, memories and storages, and how to find them by C
handles.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_rknpu.agent.abi import ErrorCode, InitFlag, TensorMemoryFlag, layouts, native_pointer_bits
from pytest_rknpu.emulator import pages
from pytest_rknpu.emulator.container import PackedModel
from pytest_rknpu.emulator.engine import Engine
from pytest_rknpu.emulator.forms import Bytes, Form, Layouts
from pytest_rknpu.emulator.memory import LINE_BYTES, Storage
from pytest_rknpu.emulator.npu_queue import NpuQueue
from pytest_rknpu.emulator.platform import Platform

# How many destroyed rknn_tensor_mem keep their addresses, so that a stale pointer does not meet a new memory.
_QUARANTINE = 4096


class Rejected(Exception):
    """A call that the runtime refuses: its code, and what the log says."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Part:
    """A piece of a storage: ``size`` bytes from ``offset``. Reads and writes are the NPU's."""

    storage: Storage
    offset: int
    size: int

    def read(self, start: int, size: int) -> Bytes:
        """A view of ``size`` bytes; beyond the storage there are zeros (undersized buffers only)."""
        begin = self.offset + start
        view = self.storage.device_read(begin, begin + size)
        return view if len(view) == size else np.append(view, np.zeros(size - len(view), np.uint8))

    def write(self, start: int, data: Bytes) -> None:
        """Write ``data``; what would lie beyond the end of the storage is lost."""
        begin = self.offset + start
        self.storage.device_write(begin, data[: max(self.storage.size - begin, 0)])


@dataclass(eq=False)
class Memory:
    """One live or destroyed ``rknn_tensor_mem``; the application holds its C ``structure``."""

    structure: Any
    part: Part
    owner: int = 0
    """Handle of the context that it was made with; 0 for none."""
    without_context: bool = False
    alive: bool = True

    @property
    def address(self) -> int:
        """Of the structure."""
        return ctypes.addressof(self.structure)


@dataclass(frozen=True)
class Binding:
    """An input or output as the NPU finds it: where, in which form; ``memory`` is None for the copying
    API's own.
    """

    part: Part
    form: Form
    memory: Memory | None

    @property
    def is_import(self) -> bool:
        """Whether the memory was made from a descriptor."""
        imported = TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
        return self.memory is not None and self.memory.structure.flags == imported


@dataclass(eq=False)
class Context:
    """One ``rknn_context``. ``weights`` and ``internal`` are None until the application gives them."""

    handle: int
    model: PackedModel
    engine: Engine
    flags: int
    inputs: list[Binding | None]
    outputs: list[Binding | None]
    weights: Part | None = None
    internal: Part | None = None
    outside: dict[str, Memory] = field(default_factory=dict)
    """Memory for "weight" or "internal" that the application gave and may destroy too early."""
    core_mask: int = 0
    runs: int = 0
    run_microseconds: int | None = None
    layer_microseconds: list[int] = field(default_factory=list)
    memo: dict[int, list[tuple[int, Bytes]]] = field(default_factory=dict)
    output_buffers: dict[int, Any] = field(default_factory=dict)
    device_memory: list[Part] = field(default_factory=list)
    held: list[Storage] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def has(self, flag: InitFlag) -> bool:
        """Whether the context was made with ``flag``."""
        return bool(self.flags & flag)


class State:
    """All of one library. Every change happens under ``lock``; layers are computed outside it."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.hooks = platform.hooks
        self.lock = threading.RLock()
        self.queue = NpuQueue()
        self.structures = layouts(native_pointer_bits(), platform.soc.context_bits)
        self.layouts = Layouts(platform.atom, platform.width_alignment, blocks_for_all=platform.is_mini)
        self.contexts: dict[int, Context] = {}
        self.memories: dict[int, Memory] = {}
        self.storages: dict[tuple[int, int], Storage] = {}
        self._quarantine: deque[Memory] = deque(maxlen=_QUARANTINE)
        self._handles = 0
        self._storages_made = 0
        self.reseed(platform.seed)

    def reseed(self, seed: int) -> None:
        """Begin the dice of the storages that are made from now on anew, whatever was thrown before."""
        self._seed, self._seeded = seed, 0

    # contexts

    def new_handle(self) -> int:
        """A context handle that was never used before; it fits 32 bits and is never 0."""
        self._handles += 1
        return 0x5A000000 + self._handles * 0x10

    def context(self, handle: int) -> Context:
        """The living context of ``handle``, or Rejected with RKNN_ERR_CTX_INVALID."""
        context = self.contexts.get(handle)
        if context is None:
            raise Rejected(ErrorCode.RKNN_ERR_CTX_INVALID, f"context {handle:#x} is not a living context")
        return context

    def hold(self, context: Context, storage: Storage) -> None:
        """Keep ``storage`` for as long as ``context`` lives."""
        storage.references += 1
        context.held.append(storage)

    # memories

    def memory(self, address: int) -> Memory:
        """The living memory whose structure is at ``address``, or Rejected with RKNN_ERR_PARAM_INVALID."""
        memory = self.memories.get(address)
        if memory is None:
            self.hooks.reject_argument()
            what = "NULL" if not address else f"{address:#x}, which is no living rknn_tensor_mem"
            raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"the memory is {what}")
        return memory

    def memory_for(self, handle: int, address: int) -> Memory:
        """The living memory at ``address``, for a call with the context ``handle`` (0: with none)."""
        memory = self.memory(address)
        foreign = bool(memory.owner and handle and memory.owner != handle)
        if foreign and not self.hooks.memories_serve_all_contexts:
            text = f"the memory belongs to context {memory.owner:#x}, not to {handle:#x}"
            raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
        return memory

    def private_storage(self, size: int) -> Storage:
        """Memory of the runtime's own: no descriptor, one view."""
        return self._storage(pages.private(size), coherent=True)

    def shared_storage(self, size: int, *, coherent: bool) -> Storage:
        """Fresh memory behind a descriptor; OSError where there is none."""
        backing = pages.allocate(size, self.hooks.close_descriptor)
        if self.hooks.fresh_byte:
            backing.bytes[:] = self.hooks.fresh_byte
        storage = self._storage(backing, coherent=coherent)
        storage.requested = size
        self.storages[pages.identity(storage.pages.fd)] = storage
        return storage

    def storage_of(self, fd: int) -> Storage:
        """The storage behind a descriptor, ours or somebody else's; OSError or ValueError if it cannot be
        mapped.
        """
        identity = pages.identity(fd)
        if identity not in self.storages:
            self.storages[identity] = self._storage(
                pages.adopt(fd, self.hooks.close_descriptor), coherent=False
            )
        return self.storages[identity]

    def _storage(self, backing: pages.Pages, *, coherent: bool) -> Storage:
        self._storages_made += 1
        self._seeded += 1
        generator = np.random.default_rng([self._seed, self._seeded])
        return Storage(backing, generator, self.hooks.cache, coherent=coherent, number=self._storages_made)

    def add_memory(
        self,
        part: Part,
        *,
        owner: int,
        fd: int,
        virtual: int,
        offset: int,
        size: int,
        flags: TensorMemoryFlag,
    ) -> Memory:
        """Make the C structure of a memory and register it."""
        structure = self.structures["rknn_tensor_mem"](
            virt_addr=virtual,
            # A number that differs per storage; nothing in the emulator is reached by it.
            phys_addr=part.storage.number * 0x1_0000_0000 + offset,
            fd=fd,
            offset=offset,
            size=size,
            flags=int(flags),
        )
        memory = Memory(structure, part, owner)
        part.storage.references += 1
        self.memories[memory.address] = memory
        return memory

    def remove_memory(self, memory: Memory) -> None:
        """Destroy a memory; its storage goes with the last one that refers to it."""
        memory.alive = False
        del self.memories[memory.address]
        self._quarantine.append(memory)
        self.let_go(memory.part.storage)

    def let_go(self, storage: Storage) -> None:
        """Give up one reference to ``storage``."""
        storage.references -= 1
        if storage.references:
            return
        if storage.pages.fd >= 0:
            with suppress(OSError):  # the application may have closed the descriptor itself
                self.storages.pop(pages.identity(storage.pages.fd), None)
        storage.release()

    def dma_bytes(self) -> int:
        """Bytes of all storages that are alive."""
        held = {id(s): s for context in self.contexts.values() for s in context.held}
        exported = {id(memory.part.storage): memory.part.storage for memory in self.memories.values()}
        return sum(storage.size for storage in {**held, **exported}.values())


def sync_range(memory: Memory) -> tuple[int, int]:
    """The bytes of the storage that a sync of ``memory`` covers.

    A memory that reaches the end of what was allocated owns its last line alone, so that the line counts
    whole.
    """
    part = memory.part
    end = part.offset + part.size
    reaches_end = end >= part.storage.requested
    return part.offset, -(-end // LINE_BYTES) * LINE_BYTES if reaches_end else end
