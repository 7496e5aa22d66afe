"""Steps that create, import and destroy ``rknn_tensor_mem`` (see ``state`` for where their bytes are)."""

from __future__ import annotations

from typing import Any, Dict

from .calls import checked_call
from .compiler import Compiler, Step
from .failures import NullFailure, ProgramFailure
from .fields import SUCCESS, U32
from .state import Memory

Arguments = Dict[str, Any]


def build_create_mem(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_create_mem``, or ``rknn_create_mem2`` where ``alloc_flags`` is given."""
    name, context, size, flags = (arguments[key] for key in ("memory", "context", "size", "alloc_flags"))
    call = "rknn_create_mem" if flags is None else "rknn_create_mem2"
    if flags is None and size > U32:
        raise ProgramFailure("rknn_create_mem takes a 32-bit size; give alloc_flags for rknn_create_mem2")
    function = compiler.function(call)
    compiler.contexts.use(context)
    nullable = _create_memory(name, arguments["expect"], compiler)
    state = compiler.state
    rest = (size,) if flags is None else (size, flags)

    def step(iteration: int) -> Any:
        _check_new(state.memories, name)
        pointer = function(state.handle(context), *rest)
        if not pointer:
            return _null(call, nullable)
        fields = state.memory_fields(pointer)
        address = fields.virt_addr
        window = fields.size if address else 0  # memory that the CPU cannot reach has no address
        state.memories.add(name, Memory(name, pointer, address, address, window, fields.fd, context))
        return _memory_value(fields)

    return step


def build_import_fd(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_create_mem_from_fd`` with fd and mapping base of ``source``; ``offset`` is from that base.

    ``source`` is a memory of this process, or one that a child inherited.
    """
    name, context, source, size, offset = (
        arguments[key] for key in ("memory", "context", "source", "size", "offset")
    )
    function = compiler.function("rknn_create_mem_from_fd")
    compiler.contexts.use(context)
    from_parent = source in compiler.state.inherited
    if not from_parent:
        compiler.memories.use(source)
    nullable = _create_memory(name, arguments["expect"], compiler)
    state = compiler.state

    def step(iteration: int) -> Any:
        _check_new(state.memories, name)
        origin = (state.inherited if from_parent else state.memories)[source]
        pointer = function(state.handle(context), origin.fd, origin.base, size, offset)
        if not pointer:
            return _null("rknn_create_mem_from_fd", nullable)
        fields = state.memory_fields(pointer)
        address = origin.base + offset
        behind = origin.address + origin.window - address
        window = max(0, min(fields.size, behind)) if offset >= 0 else 0
        state.memories.add(name, Memory(name, pointer, origin.base, address, window, origin.fd, context))
        return _memory_value(fields)

    return step


def _create_memory(name: str, accepted: Any, compiler: Compiler) -> bool:
    """Claim the name; True where NULL is tolerated. A call that returns a pointer has no codes to list."""
    if isinstance(accepted, frozenset) and accepted != SUCCESS:
        raise ProgramFailure('key \'expect\': a call that returns a pointer takes "success" or "any" only')
    nullable = bool(accepted != SUCCESS)
    if name in compiler.state.inherited:
        raise ProgramFailure(f"memory {name!r} is one that was inherited; give the new one another name")
    compiler.memories.create(name, not nullable)
    return nullable


def _check_new(memories: Any, name: str) -> None:
    if name in memories:
        raise ProgramFailure(f"memory {name!r} exists already; destroy it first")


def _null(call: str, tolerated: bool) -> None:
    if not tolerated:
        raise NullFailure(call)


def _memory_value(fields: Any) -> dict[str, int]:
    return {key: getattr(fields, key) for key in ("size", "flags", "fd", "offset", "phys_addr")}


def build_destroy_mem(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_destroy_mem``; a memory whose destruction failed stays known, so that ``reset`` names it."""
    name, context, accepted = arguments["memory"], arguments["context"], arguments["expect"]
    function = compiler.function("rknn_destroy_mem")
    compiler.contexts.use(context)
    compiler.memories.destroy(name, accepted == SUCCESS)
    state = compiler.state

    def step(iteration: int) -> int:
        code = checked_call(
            "rknn_destroy_mem", accepted, function, state.handle(context), state.memories[name].pointer
        )
        if code == 0:
            state.forget_memory(name)
        return code

    return step
