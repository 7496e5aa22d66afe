"""Steps that call the runtime. Each builder checks names, resolves the function once and returns the step."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict

from .compiler import Compiler, Step
from .constants import InitFlag, QueryCommand
from .failures import ProgramFailure, RknnFailure
from .fields import SUCCESS
from .marshal_structures import QUERY_STRUCTURES, from_structure, input_array, output_array, tensor_attribute
from .state import Context, address_of

Arguments = Dict[str, Any]


def checked_call(call: str, accepted: Any, function: Any, *arguments: int) -> int:
    """The code of a call; ``RknnFailure`` where it is none of those accepted."""
    code: int = function(*arguments)
    if code not in accepted:
        raise RknnFailure(call, code)
    return code


def build_init(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_init`` from a buffer (size > 0) or a path (size 0); ``share_weights_of`` is ``extend.ctx``."""
    sources = [key for key in ("model", "path_of", "data") if arguments[key] is not None]
    if len(sources) != 1:
        raise ProgramFailure(f"give one of model, path_of and data, not {sources or 'none'}")
    store, state = compiler.services.store, compiler.state
    if sources == ["path_of"]:
        model, size = os.fsencode(store.path(arguments["path_of"])) + b"\0", 0
    else:
        model = store.load(arguments["model"]) if sources == ["model"] else arguments["data"]
        size = len(model)
    name, flags, accepted, master = (
        arguments["context"],
        arguments["flags"],
        arguments["expect"],
        arguments["share_weights_of"],
    )
    function = compiler.function("rknn_init")
    compiler.contexts.use(master)
    compiler.contexts.create(name, accepted == SUCCESS)
    kept = model if flags & InitFlag.RKNN_FLAG_MODEL_BUFFER_ZERO_COPY else None
    structures = state.binding.structures

    def step(iteration: int) -> int:
        if name in state.contexts:
            raise ProgramFailure(f"context {name!r} exists already; destroy it first")
        handle = structures.context(0)
        extend = structures["rknn_init_extend"](ctx=state.handle(master)) if master is not None else None
        code = checked_call(
            "rknn_init",
            accepted,
            function,
            ctypes.addressof(handle),
            address_of(model),
            size,
            flags,
            0 if extend is None else ctypes.addressof(extend),
        )
        if code == 0:
            state.contexts.add(name, Context(name, handle.value, kept))
        return code

    return step


def build_dup(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_dup_context``: ``context`` is the new one."""
    name, source, accepted = arguments["context"], arguments["source"], arguments["expect"]
    function = compiler.function("rknn_dup_context")
    compiler.contexts.use(source)
    compiler.contexts.create(name, accepted == SUCCESS)
    state = compiler.state
    context_type = state.binding.structures.context

    def step(iteration: int) -> int:
        if name in state.contexts:
            raise ProgramFailure(f"context {name!r} exists already; destroy it first")
        original, duplicate = context_type(state.contexts[source].handle), context_type(0)
        code = checked_call(
            "rknn_dup_context", accepted, function, ctypes.addressof(original), ctypes.addressof(duplicate)
        )
        if code == 0:
            state.contexts.add(name, Context(name, duplicate.value))
        return code

    return step


def build_destroy(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_destroy``; a context whose destruction failed stays known, so that ``reset`` names it."""
    name, accepted = arguments["context"], arguments["expect"]
    function = compiler.function("rknn_destroy")
    compiler.contexts.destroy(name, accepted == SUCCESS)
    state = compiler.state

    def step(iteration: int) -> int:
        code = checked_call("rknn_destroy", accepted, function, state.contexts[name].handle)
        if code == 0:
            state.forget_context(name)
        return code

    return step


def build_query(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_query`` with the structure of the command, zeroed, ``index`` set where it has one."""
    name, command, index, accepted = (arguments[key] for key in ("context", "query", "index", "expect"))
    if command not in QUERY_STRUCTURES:
        known = ", ".join(
            f"{entry.name}={entry.value}" for entry in QueryCommand if entry in QUERY_STRUCTURES
        )
        raise ProgramFailure(f"query {command} has no structure; there are {known}")
    compiler.contexts.use(name)
    function = compiler.function("rknn_query")
    contexts = compiler.state.contexts
    structure = compiler.state.binding.structures[QUERY_STRUCTURES[QueryCommand(command)]]
    size = ctypes.sizeof(structure)
    indexed = any(field[0] == "index" for field in structure._fields_)

    def step(iteration: int) -> dict[str, Any]:
        info = structure(index=index) if indexed else structure()
        code = checked_call(
            "rknn_query", accepted, function, contexts[name].handle, command, ctypes.addressof(info), size
        )
        return {**from_structure(info, follow=code == 0), "code": code}

    return step


def build_bind(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_set_io_mem`` with the attribute as a query saved it (key ``code`` is ignored)."""
    name, memory, accepted = arguments["context"], arguments["memory"], arguments["expect"]
    function = compiler.function("rknn_set_io_mem")
    compiler.contexts.use(name)
    compiler.memories.use(memory)
    template = tensor_attribute(compiler.state.binding.structures, arguments["attr"])
    state = compiler.state

    def step(iteration: int) -> int:
        attribute = type(template).from_buffer_copy(template)
        return checked_call(
            "rknn_set_io_mem",
            accepted,
            function,
            state.contexts[name].handle,
            state.memories[memory].pointer,
            ctypes.addressof(attribute),
        )

    return step


def _context_and_memory(call: str, arguments: Arguments, compiler: Compiler) -> Step:
    name, memory, accepted = arguments["context"], arguments["memory"], arguments["expect"]
    function = compiler.function(call)
    compiler.contexts.use(name)
    compiler.memories.use(memory)
    contexts, memories = compiler.state.contexts, compiler.state.memories

    def step(iteration: int) -> int:
        return checked_call(call, accepted, function, contexts[name].handle, memories[memory].pointer)

    return step


def build_bind_weights(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_set_weight_mem``."""
    return _context_and_memory("rknn_set_weight_mem", arguments, compiler)


def build_bind_internal(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_set_internal_mem``."""
    return _context_and_memory("rknn_set_internal_mem", arguments, compiler)


def build_set_core_mask(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_set_core_mask``."""
    name, mask, accepted = arguments["context"], arguments["mask"], arguments["expect"]
    function = compiler.function("rknn_set_core_mask")
    compiler.contexts.use(name)
    contexts = compiler.state.contexts

    def step(iteration: int) -> int:
        return checked_call("rknn_set_core_mask", accepted, function, contexts[name].handle, mask)

    return step


def build_set_inputs(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_inputs_set``; the array of ``rknn_input`` is built once and points at the program's blobs."""
    name, accepted = arguments["context"], arguments["expect"]
    function = compiler.function("rknn_inputs_set")
    compiler.contexts.use(name)
    contexts = compiler.state.contexts
    array = input_array(compiler.state.binding.structures, arguments["inputs"])

    def step(iteration: int) -> int:
        address = ctypes.addressof(array)
        return checked_call("rknn_inputs_set", accepted, function, contexts[name].handle, len(array), address)

    return step


def build_run(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_run`` without the extend structure (the documents ask for NULL)."""
    name, accepted = arguments["context"], arguments["expect"]
    function = compiler.function("rknn_run")
    compiler.contexts.use(name)
    contexts = compiler.state.contexts

    def step(iteration: int) -> int:
        code: int = function(contexts[name].handle, 0)
        if code not in accepted:
            raise RknnFailure("rknn_run", code)
        return code

    return step


def build_get_outputs(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_outputs_get`` into the library's buffers, a copy of each, ``rknn_outputs_release``.

    The value is the list of bytes; where the call was allowed to fail and did, its code.
    """
    name, outputs, accepted = arguments["context"], arguments["outputs"], arguments["expect"]
    get, release = compiler.function("rknn_outputs_get"), compiler.function("rknn_outputs_release")
    compiler.contexts.use(name)
    contexts, structures = compiler.state.contexts, compiler.state.binding.structures

    def step(iteration: int) -> Any:
        array = output_array(structures, outputs)
        address, handle = ctypes.addressof(array), contexts[name].handle
        code = checked_call("rknn_outputs_get", accepted, get, handle, len(array), address, 0)
        if code != 0:
            return code
        copies = [ctypes.string_at(entry.buf, entry.size) if entry.buf else b"" for entry in array]
        checked_call("rknn_outputs_release", SUCCESS, release, handle, len(array), address)
        return copies

    return step


def build_sync(arguments: Arguments, compiler: Compiler) -> Step:
    """``rknn_mem_sync``; ``context`` None passes NULL (accepted except on RV1103/RV1106, SYNC-12)."""
    memory, context, mode, accepted = (arguments[key] for key in ("memory", "context", "mode", "expect"))
    function = compiler.function("rknn_mem_sync")
    compiler.contexts.use(context)
    compiler.memories.use(memory)
    memories, handle = compiler.state.memories, compiler.state.handle

    def step(iteration: int) -> int:
        code: int = function(handle(context), memories[memory].pointer, mode)
        if code not in accepted:
            raise RknnFailure("rknn_mem_sync", code)
        return code

    return step
