"""rknn_create_mem and its kin, rknn_destroy_mem, rknn_mem_sync. The create calls return NULL where they
refuse.
"""

from __future__ import annotations

import time

from pytest_rknpu.agent.abi import AllocationFlag, ErrorCode, MemorySyncMode, TensorMemoryFlag
from pytest_rknpu.emulator.hooks import Range
from pytest_rknpu.emulator.state import Memory, Part, Rejected, State, sync_range

_MAX_BYTES = 1 << 29  # a board's memory has an end; the emulator keeps three copies
_SOMEBODY_ELSE = 0xC3  # any byte
_MODES = frozenset(int(mode) for mode in MemorySyncMode)


def create_mem(state: State, handle: int, size: int) -> int:
    """rknn_create_mem: cacheable."""
    state.context(handle)
    return _create(state, handle, size, coherent=False)


def create_mem2(state: State, handle: int, size: int, alloc_flags: int) -> int:
    """rknn_create_mem2; with RKNN_MEM_FLAG_ALLOC_NO_CONTEXT the context may be 0."""
    without_context = bool(alloc_flags & AllocationFlag.RKNN_MEM_FLAG_ALLOC_NO_CONTEXT)
    if handle or not without_context:
        state.context(handle)
    both = AllocationFlag.RKNN_FLAG_MEMORY_CACHEABLE | AllocationFlag.RKNN_FLAG_MEMORY_NON_CACHEABLE
    if alloc_flags & both == both:
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, "the memory is to be cacheable and non-cacheable")
    address = _create(state, handle, size, coherent=state.hooks.is_coherent(alloc_flags))
    state.memories[address].without_context = without_context
    return address


def _create(state: State, owner: int, size: int, *, coherent: bool) -> int:
    if not 0 < size <= _MAX_BYTES:
        code = ErrorCode.RKNN_ERR_MALLOC_FAIL if size else ErrorCode.RKNN_ERR_PARAM_INVALID
        raise Rejected(code, f"a memory of {size} bytes")
    try:
        storage = state.shared_storage(size, coherent=coherent)
    except OSError as error:
        raise Rejected(ErrorCode.RKNN_ERR_MALLOC_FAIL, f"{size} bytes: {error.strerror}") from error
    memory = state.add_memory(
        Part(storage, 0, size),
        owner=owner,
        fd=storage.pages.fd,
        virtual=storage.pages.address,
        offset=0,
        size=size,
        flags=TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE,
    )
    return memory.address


def create_mem_from_fd(state: State, handle: int, fd: int, virtual: int, size: int, offset: int) -> int:
    """rknn_create_mem_from_fd: ``size`` bytes at ``offset`` behind ``fd``; ``virtual`` is the mapping's base.

    An offset within a cache line is refused: the line would have two owners, and no cache maintenance of
    whole lines can keep the bytes of both.
    """
    state.context(handle)
    if not virtual or size <= 0 or offset < 0:
        text = f"virt_addr {virtual:#x}, size {size}, offset {offset}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    if not state.hooks.accepts_import_at(offset):
        raise Rejected(
            ErrorCode.RKNN_ERR_PARAM_INVALID, f"offset {offset} is not a multiple of a cache line (64)"
        )
    try:
        storage = state.storage_of(fd)
    except (OSError, ValueError) as error:
        raise Rejected(
            ErrorCode.RKNN_ERR_PARAM_INVALID, f"descriptor {fd} cannot be imported: {error}"
        ) from error
    if offset + size > storage.size:
        text = f"{offset}+{size} bytes of a memory of {storage.size}"
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, text)
    memory = state.add_memory(
        Part(storage, offset, size),
        owner=handle,
        fd=fd,
        virtual=virtual,
        offset=offset,
        size=size,
        flags=TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD,
    )
    return memory.address


def create_mem_from_phys(state: State, *_: object) -> int:
    """rknn_create_mem_from_phys: refused, since there is no physical memory behind an emulated board."""
    raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, "physical addresses mean nothing on an emulated board")


def create_mem_from_mb_blk(state: State, *_: object) -> int:
    """rknn_create_mem_from_mb_blk: documented as not implemented anywhere."""
    raise Rejected(ErrorCode.RKNN_ERR_FAIL, "not implemented by any runtime")


def destroy_mem(state: State, handle: int, address: int) -> None:
    """rknn_destroy_mem; context 0 will do for memory made without one, any living context for all."""
    memory = state.memory(address)
    if handle or not memory.without_context:
        state.context(handle)
    imported = memory.structure.flags == TensorMemoryFlag.RKNN_TENSOR_MEMORY_FLAGS_FROM_FD
    if imported and state.hooks.frees_what_was_imported:
        memory.part.storage.cpu[:] = _SOMEBODY_ELSE
    state.remove_memory(memory)


def mem_sync(state: State, handle: int, address: int, mode: int) -> None:
    """rknn_mem_sync; context NULL is accepted except by the mini runtime (user guide 2.5.0, 4.1.6)."""
    takes_null = state.platform.soc.null_context_sync and state.hooks.syncs_without_context
    if handle or not takes_null:
        state.context(handle)
    memory = state.memory_for(handle, address)
    if mode not in _MODES:
        state.hooks.reject_argument()
        raise Rejected(ErrorCode.RKNN_ERR_PARAM_INVALID, f"sync mode {mode}")
    if memory.part.storage.coherent and not state.hooks.syncs_non_cacheable:
        raise Rejected(ErrorCode.RKNN_ERR_FAIL, "the memory is not cacheable")
    started_ns = time.perf_counter_ns()
    sync(state, memory, mode)
    if state.platform.pace is not None:
        state.platform.pace.end_of_sync(started_ns, mode, memory.part.size)


def sync(state: State, memory: Memory, mode: int) -> None:
    """Cache maintenance as the driver does it, asked for by the application or by rknn_run."""
    target = state.hooks.sync_target(memory, state.memories.values())
    if target is None:
        return
    memory = target
    storage = memory.part.storage
    start, end = sync_range(memory)
    for step in state.hooks.sync_steps(mode, Range(start, end, memory.part.offset, memory.part.size)):
        maintain = storage.clean if step.operation == "clean" else storage.invalidate
        maintain(step.start, step.end)
