"""What lives between programs of one session: contexts and memories by the names that programs gave them.

Where a memory's bytes are, for the CPU
    ``rknn_create_mem*``: at ``virt_addr`` of the structure that the library returned.
    ``rknn_create_mem_from_fd``: the header says "virt_addr without offset", so the mapping base is passed and
    the memory begins at base + offset. No document says whether the returned structure's ``virt_addr`` is
    that base or already includes the offset. The agent therefore never reads it back: it keeps the base and
    offset that it passed. ``window`` is how many bytes the CPU may touch: the structure's ``size``, for an
    import no more than its source has left behind the offset.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Dict, Mapping, Tuple, TypeVar

from .binding import Binding
from .constants import code_name
from .failures import MissingFunction, ProgramFailure

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Context:
    """A live ``rknn_context``; ``kept`` holds what must outlive it (a zero-copy model buffer)."""

    name: str
    handle: int
    kept: Any = None


@dataclass(frozen=True)
class Memory:
    """A live ``rknn_tensor_mem`` at ``pointer``: ``base`` of its mapping, first byte at ``address``."""

    name: str
    pointer: int
    base: int
    address: int
    window: int
    fd: int
    context: str | None

    def exported(self) -> tuple[int, int]:
        """Descriptor, and bytes of its mapping from ``base`` on: what another process needs to map it."""
        return self.fd, self.address - self.base + self.window

    def span(self, offset: int, length: int) -> int:
        """CPU address of ``offset`` after checking that ``length`` bytes from there lie inside; bytes.

        Raises ``ProgramFailure`` where they do not.
        """
        if offset < 0 or length < 0 or offset + length > self.window:
            raise ProgramFailure(
                f"bytes {offset} to {offset + length} lie outside memory {self.name!r} of {self.window} bytes"
            )
        return self.address + offset


Handed = Dict[str, Tuple[int, int]]
"""Name -> descriptor and bytes of a memory that a child process inherits."""


def inherited(name: str, fd: int, base: int, size: int) -> Memory:
    """A memory of the parent process as its child has it: mapped at ``base``, unknown to the runtime."""
    return Memory(name, 0, base, base, size, fd, None)


class Registry(Dict[str, Kept]):
    """Named things; a missing name is a ``ProgramFailure`` that says what there is."""

    def __init__(self, noun: str) -> None:
        super().__init__()
        self.noun = noun

    def __missing__(self, name: str) -> Kept:
        raise ProgramFailure(f"there is no {self.noun} {name!r}; there are {sorted(self) or 'none'}")

    def add(self, name: str, thing: Kept) -> None:
        """Register a new thing; ``ProgramFailure`` where the name is taken."""
        if name in self:
            raise ProgramFailure(f"{self.noun} {name!r} exists already; destroy it first")
        self[name] = thing


class State:
    """Contexts and memories of one session, and the handles of destroyed ones (for ``call`` in a child).

    ``inherited`` are memories of the parent process, to be imported.
    """

    def __init__(self, binding: Binding, inherited: Mapping[str, Memory] = MappingProxyType({})) -> None:
        self.binding = binding
        self.inherited = inherited
        self.contexts: Registry[Context] = Registry("context")
        self.memories: Registry[Memory] = Registry("memory")
        self.stale_contexts: dict[str, int] = {}
        self.stale_memories: dict[str, int] = {}

    def handle(self, name: str | None) -> int:
        """The handle of a context; 0 for None (the C API's NULL context)."""
        return 0 if name is None else self.contexts[name].handle

    def memory_fields(self, pointer: int) -> Any:
        """The ``rknn_tensor_mem`` at an address, as the live structure."""
        return self.binding.structures["rknn_tensor_mem"].from_address(pointer)

    def forget_context(self, name: str) -> None:
        """Take a destroyed context out, keeping its handle for tests of use after destroy."""
        self.stale_contexts[name] = self.contexts.pop(name).handle

    def forget_memory(self, name: str) -> None:
        """Take a destroyed memory out, keeping its pointer for tests of use after destroy."""
        self.stale_memories[name] = self.memories.pop(name).pointer

    def destroy_all(self) -> tuple[list[str], dict[str, str]]:
        """Destroy what is left: memories before contexts, youngest first.

        Returns the names of all that were alive, and code names of the destroy calls that failed.
        """
        left = list(self.memories) + list(self.contexts)
        failed: dict[str, str] = {}
        for name, memory in reversed(list(self.memories.items())):
            # A context that is gone must not be passed: the vendor's library crashes on it. 0 is refused
            # safely.
            owner = self.contexts.get(memory.context) if memory.context is not None else None
            _destroy(
                self.binding, "rknn_destroy_mem", failed, name, owner.handle if owner else 0, memory.pointer
            )
        for name, context in reversed(list(self.contexts.items())):
            _destroy(self.binding, "rknn_destroy", failed, name, context.handle)
        self.contexts.clear()
        self.memories.clear()
        self.stale_contexts.clear()
        self.stale_memories.clear()
        return left, failed


def _destroy(binding: Binding, call: str, failed: dict[str, str], name: str, *arguments: int) -> None:
    try:
        code = binding.function(call)(*arguments)
    except MissingFunction as error:
        failed[name] = str(error)
        return
    if code != 0:
        failed[name] = code_name(code)


def address_of(data: bytes) -> int:
    """Address of the first byte of a bytes object, which the caller must keep alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
