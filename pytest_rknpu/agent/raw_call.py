"""The ``call`` step: any RKNN function with any arguments, allowed in a child only, because it may crash.

An argument is an int, or a dict with one key: ``null`` (True), ``context`` (handle of a context, also of a
destroyed one), ``context_pointer`` (address of a variable that holds the handle; a new name starts as 0 and
becomes a context if the call succeeds and fills it), ``memory`` (address of a ``rknn_tensor_mem``, also of a
destroyed one), ``blob`` (address of a writable copy of the blob, followed by a NUL).
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable

from .compiler import Compiler, Step
from .failures import ProgramFailure, RknnFailure
from .prototypes import PROTOTYPES
from .state import Context, State

Argument = Callable[[], int]
MAXIMUM_ARGUMENTS = 16


def build_call(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Resolve the function, check the arguments; convert and call when the step comes."""
    if not compiler.in_child:
        raise ProgramFailure("allowed in a child only: the call may crash the process")
    name, given, accepted = arguments["function"], arguments["arguments"], arguments["expect"]
    if not name.startswith("rknn_"):
        raise ProgramFailure(f"key 'function': {name!r} is no RKNN function")
    if not isinstance(given, list) or len(given) > MAXIMUM_ARGUMENTS:
        raise ProgramFailure(f"key 'arguments': expected a list of at most {MAXIMUM_ARGUMENTS}")
    pointers: list[tuple[str, Any]] = []
    values = [_argument(number, entry, compiler, pointers) for number, entry in enumerate(given)]
    prototype = PROTOTYPES.get(name)
    if prototype is not None and len(prototype.arguments) != len(given):
        raise ProgramFailure(f"{name} takes {len(prototype.arguments)} arguments, not {len(given)}")
    binding = compiler.state.binding
    function = (
        binding.function(name) if prototype is not None else binding.function_with_integers(name, len(given))
    )
    state = compiler.state

    def step(iteration: int) -> int:
        code = function(*[value() for value in values])
        _adopt(state, pointers)
        if code not in accepted:
            raise RknnFailure(name, code)
        return code or 0

    return step


def _adopt(state: State, pointers: list[tuple[str, Any]]) -> None:
    """Contexts that the call created through a pointer become known by their names."""
    for name, variable in pointers:
        if variable.value and name not in state.contexts and name not in state.stale_contexts:
            state.contexts.add(name, Context(name, variable.value))


def _argument(number: int, entry: Any, compiler: Compiler, pointers: list[tuple[str, Any]]) -> Argument:
    if isinstance(entry, int) and not isinstance(entry, bool) and -(2**63) <= entry < 2**64:
        return lambda: entry
    if isinstance(entry, dict) and len(entry) == 1:
        ((kind, value),) = entry.items()
        if kind == "null" and value is True:
            return lambda: 0
        if kind in ("context", "context_pointer", "memory", "blob") and isinstance(value, str) and value:
            return _named(kind, value, compiler, pointers)
    raise ProgramFailure(
        f"argument {number}: expected an int or one of null, context, context_pointer, memory, blob"
    )


def _named(kind: str, value: str, compiler: Compiler, pointers: list[tuple[str, Any]]) -> Argument:
    state = compiler.state
    if kind == "blob":
        if value not in compiler.blobs:
            raise ProgramFailure(f"there is no blob {value!r}")
        buffer = ctypes.create_string_buffer(compiler.blobs[value])
        return lambda: ctypes.addressof(buffer)
    if kind == "context_pointer":
        variable = state.binding.structures.context(0)
        pointers.append((value, variable))
        compiler.contexts.alive.add(value)

        def point() -> int:
            known = state.contexts.get(value)
            variable.value = known.handle if known else state.stale_contexts.get(value, 0)
            return ctypes.addressof(variable)

        return point
    names = compiler.contexts if kind == "context" else compiler.memories
    if value not in names.stale:
        names.use(value)
    if kind == "context":
        return lambda: (
            state.stale_contexts[value] if value in state.stale_contexts else state.contexts[value].handle
        )
    return lambda: (
        state.stale_memories[value] if value in state.stale_memories else state.memories[value].pointer
    )
