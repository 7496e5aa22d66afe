"""The emulated runtime library: real C function pointers over `state.State`."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from pytest_rknpu.agent.abi import POINTER, PROTOTYPES, ErrorCode, concrete
from pytest_rknpu.emulator import binding, contexts, copying, log, memories, queries, running
from pytest_rknpu.emulator.occupancy import occupy
from pytest_rknpu.emulator.platform import Platform, platform_from
from pytest_rknpu.emulator.state import Rejected, State

_FUNCTIONS: Mapping[str, Callable[..., int | None]] = {
    "rknn_init": contexts.init,
    "rknn_dup_context": contexts.dup_context,
    "rknn_destroy": contexts.destroy,
    "rknn_set_core_mask": contexts.set_core_mask,
    "rknn_set_weight_mem": contexts.set_weight_mem,
    "rknn_set_internal_mem": contexts.set_internal_mem,
    "rknn_query": queries.query,
    "rknn_inputs_set": copying.inputs_set,
    "rknn_outputs_get": copying.outputs_get,
    "rknn_outputs_release": copying.outputs_release,
    "rknn_run": running.run,
    "rknn_create_mem": memories.create_mem,
    "rknn_create_mem2": memories.create_mem2,
    "rknn_create_mem_from_fd": memories.create_mem_from_fd,
    "rknn_create_mem_from_phys": memories.create_mem_from_phys,
    "rknn_create_mem_from_mb_blk": memories.create_mem_from_mb_blk,
    "rknn_destroy_mem": memories.destroy_mem,
    "rknn_set_io_mem": binding.set_io_mem,
    "rknn_mem_sync": memories.mem_sync,
}
"""What is emulated. Everything else that a platform exports answers as unsupported."""

# These take the lock themselves: they wait for a run, which needs it.
_LOCK_THEMSELVES = frozenset({"rknn_run", "rknn_destroy"})


class Library:
    """One loaded library. ``symbol`` is what ``dlsym`` is to a shared object."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self._state = State(platform)
        self._callbacks = {name: self._callback(name) for name in platform.exports}

    def symbol(self, name: str) -> int | None:
        """The address of C function ``name``, or None where this runtime version does not export it."""
        callback = self._callbacks.get(name)
        return None if callback is None else ctypes.cast(callback, ctypes.c_void_p).value

    def reseed(self, seed: int) -> None:
        """Throw the dice of evictions and faults anew from here: a test is then the same after any other."""
        with self._state.lock:
            self._state.reseed(seed)

    def _callback(self, name: str) -> Any:
        prototype = PROTOTYPES[name]
        kinds = [concrete(kind, self._state.structures) for kind in (prototype.result, *prototype.arguments)]
        returns_pointer = prototype.result == POINTER
        return ctypes.CFUNCTYPE(*kinds)(self._guarded(name, returns_pointer))

    def _guarded(self, name: str, returns_pointer: bool) -> Callable[..., int]:
        """The function as C sees it: never an exception, an error line for each refusal."""
        state = self._state
        known = _FUNCTIONS.get(name)
        function = known if known is not None and state.platform.supports(name) else contexts.unsupported

        def locked(*arguments: int) -> int | None:
            with state.lock:
                return function(state, *arguments)

        def unlocked(*arguments: int) -> int | None:
            return function(state, *arguments)

        call = unlocked if name in _LOCK_THEMSELVES else locked

        def entry(*arguments: int) -> int:
            try:
                return call(*arguments) or 0
            except Rejected as refusal:
                log.error(f"{name}: {refusal} ({refusal.code.name})")
                state.hooks.after_refusal()
                code = int(refusal.code)
            except Exception:
                # Nothing may unwind into C; ctypes would print and return a 0 that looks like success.
                log.error(f"{name}: internal error of the emulator: {traceback.format_exc()}")
                code = int(ErrorCode.RKNN_ERR_FAIL)
            return 0 if returns_pointer else code

        return entry


def open_library(options: Mapping[str, Any]) -> Library:
    """An emulated runtime library for one board; see `platform.platform_from` for the options.

    Raises UsedTwice where another process has the machine that it is on (`occupancy`).
    """
    occupy()
    return Library(platform_from(options))
