"""The ``call`` step: any RKNN function with any arguments, allowed in a child only, because it may crash.

An argument is an int, or a dict with one key:

- ``null`` (True): a NULL pointer;
- ``context``: the handle of a context, also of a destroyed one;
- ``context_pointer``: the address of a variable that holds the handle, 0 for a new name. What the call writes
  there is from then on the context of that name;
- ``memory``: the address of a ``rknn_tensor_mem``, also of a destroyed one;
- ``blob``: the address of a writable copy of the blob, followed by a NUL.
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
    pointers: list[ContextPointer] = []
    values = [_argument(number, entry, compiler, pointers) for number, entry in enumerate(given)]
    prototype = PROTOTYPES.get(name)
    if prototype is not None and len(prototype.arguments) != len(given):
        raise ProgramFailure(f"{name} takes {len(prototype.arguments)} arguments, not {len(given)}")
    binding = compiler.state.binding
    function = (
        binding.function(name) if prototype is not None else binding.function_with_integers(name, len(given))
    )

    def step(iteration: int) -> int:
        code = function(*[value() for value in values])
        for pointer in pointers:
            pointer.adopt()
        if code not in accepted:
            raise RknnFailure(name, code)
        return code or 0

    return step


class ContextPointer:
    """A ``rknn_context`` variable whose address a call gets, and whose new value becomes a context."""

    def __init__(self, name: str, state: State) -> None:
        self._name = name
        self._state = state
        self._variable = state.binding.structures.context(0)
        self._before = 0

    def address(self) -> int:
        """Address of the variable, which holds the handle of the context so far, or 0."""
        self._before = _context(self._state, self._name) if _is_known(self._state, self._name) else 0
        self._variable.value = self._before
        return ctypes.addressof(self._variable)

    def adopt(self) -> None:
        """After the call: a value that it wrote is the context of this name."""
        written = self._variable.value
        if written not in (0, self._before):
            self._state.contexts[self._name] = Context(self._name, written)


def _is_known(state: State, name: str) -> bool:
    return name in state.contexts or name in state.stale_contexts


def _context(state: State, name: str) -> int:
    """Handle of a context, a live one before a destroyed one of the same name."""
    stale = state.stale_contexts.get(name)
    return state.contexts[name].handle if name in state.contexts or stale is None else stale


def _memory(state: State, name: str) -> int:
    """Address of a ``rknn_tensor_mem``, a live one before a destroyed one of the same name."""
    stale = state.stale_memories.get(name)
    return state.memories[name].pointer if name in state.memories or stale is None else stale


def _argument(number: int, entry: Any, compiler: Compiler, pointers: list[ContextPointer]) -> Argument:
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


def _named(kind: str, value: str, compiler: Compiler, pointers: list[ContextPointer]) -> Argument:
    state = compiler.state
    if kind == "blob":
        if value not in compiler.blobs:
            raise ProgramFailure(f"there is no blob {value!r}")
        buffer = ctypes.create_string_buffer(compiler.blobs[value])
        return lambda: ctypes.addressof(buffer)
    if kind == "context_pointer":
        compiler.contexts.alive.add(value)
        pointers.append(ContextPointer(value, state))
        return pointers[-1].address
    names, read = (compiler.contexts, _context) if kind == "context" else (compiler.memories, _memory)
    if value not in names.stale:
        names.use(value)
    return lambda: read(state, value)
