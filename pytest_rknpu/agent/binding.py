"""C functions by name: looked up when first needed, typed by the table of prototypes.

All pointers are passed and returned as integers, so that structures of either ABI fit. The library is
whatever answers ``symbol(name)`` with the address of a C function: a shared object or the emulator.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional

from .failures import MissingFunction
from .library import Library
from .prototypes import PROTOTYPES, Prototype, concrete
from .structures import Layouts, layouts, native_pointer_bits

SymbolLookup = Callable[[str], Optional[int]]


class Binding:
    """The RKNN functions of one library under one ABI (``structures``)."""

    def __init__(self, symbol: SymbolLookup, structures: Layouts) -> None:
        self.structures = structures
        self._symbol = symbol
        self._functions: dict[str, Any] = {}

    def function(self, name: str) -> Any:
        """The callable for ``name``; ``MissingFunction`` where the library does not export it."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._typed(name, PROTOTYPES[name])
        return found

    def function_with_integers(self, name: str, count: int) -> Any:
        """The callable for a function outside the table: ``count`` pointer-wide integers to an ``int``."""
        return self._typed(name, Prototype(ctypes.c_int, (self.structures.pointer,) * count))

    def exported(self) -> list[str]:
        """The names of the table that the library exports, in the headers' order."""
        return [name for name in PROTOTYPES if self._symbol(name)]

    def _typed(self, name: str, prototype: Prototype) -> Any:
        address = self._symbol(name)
        if not address:
            raise MissingFunction(name)
        arguments = [concrete(kind, self.structures) for kind in prototype.arguments]
        # CFUNCTYPE lets go of the interpreter lock during the call: threads of a program really run side by
        # side, and an emulator that is written in Python can take it.
        return ctypes.CFUNCTYPE(concrete(prototype.result, self.structures), *arguments)(address)


def bind(library: Library) -> Binding:
    """The functions of an open library under the ABI of this process and the library's context width."""
    return Binding(library.symbol, layouts(native_pointer_bits(), library.context_bits))
