"""Steps that time calls: wall clock around the C call itself, back to back, nothing else in between.

The clock is read directly before and after the call, in the same Python function, with the arguments bound
beforehand (``functools.partial``): what is measured beside the call is the binding (see ``time_no_op``) and
one reading of the clock. The garbage collector is off meanwhile, since it would strike one run out of some
hundreds. Which call comes when was decided by the host (``order``), so that a random order can be repeated.

The deadline of the request holds here too, at no cost: the clock is read after each call anyway.
"""

from __future__ import annotations

import ctypes
import gc
import math
import time
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Dict, Iterator, NamedTuple, Sequence

from .compiler import Body, Compiler, Step
from .constants import QueryCommand
from .failures import DeadlineFailure, MissingFunction, ProgramFailure, RknnFailure, located
from .fields import MAXIMUM_RUNS
from .prototypes import PROTOTYPES, concrete

Call = Callable[[], int]
Arguments = Dict[str, Any]


class Timing(NamedTuple):
    """What is timed: ``calls`` of the C function ``name`` in that ``order``, after the steps ``before`` each.

    ``queries`` are asked after a run, by call; ``ends_ns`` is when nobody waits for the rest any more.
    """

    name: str
    calls: Sequence[Call]
    order: bytes
    before: Body
    warm_up: int
    queries: Sequence[Callable[[], int]] | None
    ends_ns: int


NO_OP = "abs"
"""A function of any C library that does nothing worth mentioning, and keeps no state."""
_NEVER_NS = 2**63


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect once now, not during the block, and as before after it."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_time_runs(arguments: Arguments, compiler: Compiler) -> Step:
    """Time ``rknn_run`` of one or several contexts; with ``perf_run`` ask RKNN_QUERY_PERF_RUN after each.

    A query that is refused gives its code, which is negative: the run was timed all the same.

    Saves ``{"wall_ns": [int], "perf_run_us": [int] or None, "started_ns", "ended_ns"}``, entries in the order
    of the runs.
    """
    names: list[str] = arguments["contexts"]
    order = _order(arguments, len(names))
    for name in names:
        compiler.contexts.use(name)
    run = compiler.function("rknn_run")
    contexts = compiler.state.contexts
    perf_run = _perf_run_queries(names, compiler) if arguments["perf_run"] else None
    before, warm_up = compiler.body(arguments["before"], repeated=True), arguments["warm_up"]
    ends_ns = _ends_ns(compiler)

    def step(iteration: int) -> dict[str, Any]:
        calls = [partial(run, contexts[name].handle, 0) for name in names]
        queries = perf_run() if perf_run is not None else None
        return _timed(Timing("rknn_run", calls, order, before, warm_up, queries, ends_ns))

    return step


def build_time_syncs(arguments: Arguments, compiler: Compiler) -> Step:
    """Time ``rknn_mem_sync`` of one memory in several modes; saves as ``time_runs`` does."""
    memory, context, modes = arguments["memory"], arguments["context"], arguments["modes"]
    order = _order(arguments, len(modes))
    compiler.contexts.use(context)
    compiler.memories.use(memory)
    sync = compiler.function("rknn_mem_sync")
    state = compiler.state
    before, warm_up = compiler.body(arguments["before"], repeated=True), arguments["warm_up"]
    ends_ns = _ends_ns(compiler)

    def step(iteration: int) -> dict[str, Any]:
        handle, pointer = state.handle(context), state.memories[memory].pointer
        calls = [partial(sync, handle, pointer, mode) for mode in modes]
        return _timed(Timing("rknn_mem_sync", calls, order, before, warm_up, None, ends_ns))

    return step


def build_time_no_op(arguments: Arguments, compiler: Compiler) -> Step:
    """Time a C function that does nothing, typed and called as ``rknn_run`` is: the binding's own cost."""
    prototype, structures = PROTOTYPES["rknn_run"], compiler.state.binding.structures
    kinds = [concrete(kind, structures) for kind in (prototype.result, *prototype.arguments)]
    try:
        address = ctypes.cast(getattr(ctypes.CDLL(None), NO_OP), ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        raise MissingFunction(NO_OP) from None
    # It takes one int: a caller may pass more than a function takes, on every ABI that RKNN exists for.
    function = ctypes.CFUNCTYPE(*kinds)(address)
    order, warm_up, ends_ns = bytes(arguments["count"]), arguments["warm_up"], _ends_ns(compiler)

    def step(iteration: int) -> dict[str, Any]:
        return _timed(Timing(NO_OP, [partial(function, 0, 0)], order, (), warm_up, None, ends_ns))

    return step


def _order(arguments: Arguments, calls: int) -> bytes:
    """Which call comes when, by index: as the host says, or ``count`` times the only one."""
    order, count = arguments["order"], arguments["count"]
    if (order is None) == (count is None):
        raise ProgramFailure("give one of count and order")
    if order is None:
        if calls != 1:
            raise ProgramFailure(
                f"{calls} calls need an order: a blob with one byte per run, the call's index"
            )
        return bytes(count)
    if not 1 <= len(order) <= MAXIMUM_RUNS or max(order) >= calls:
        raise ProgramFailure(
            f"order has 1 to {MAXIMUM_RUNS} bytes, each an index of one of the {calls} calls"
        )
    checked: bytes = order
    return checked


def _perf_run_queries(names: Sequence[str], compiler: Compiler) -> Callable[[], list[Callable[[], int]]]:
    query, contexts = compiler.function("rknn_query"), compiler.state.contexts
    structure = compiler.state.binding.structures["rknn_perf_run"]
    size, command = ctypes.sizeof(structure), int(QueryCommand.RKNN_QUERY_PERF_RUN)

    def asking(handle: int) -> Callable[[], int]:
        answer = structure()

        def ask() -> int:
            code: int = query(handle, command, ctypes.addressof(answer), size)
            return int(answer.run_duration) if code == 0 else code

        return ask

    return lambda: [asking(contexts[name].handle) for name in names]


def _ends_ns(compiler: Compiler) -> int:
    ends = compiler.services.ends
    return _NEVER_NS if math.isinf(ends) else int(ends * 1e9)


def _timed(timing: Timing) -> dict[str, Any]:
    """Warm every call up, then time them in order. A failure's path is [.., run] or [.., run, index]."""
    for call in timing.calls:
        for number in range(timing.warm_up):
            code = call()
            if code != 0:
                raise RknnFailure(timing.name, code)
            if time.monotonic_ns() > timing.ends_ns:
                raise DeadlineFailure(f"out of time after {number + 1} of {timing.warm_up} runs to warm up")
    loop = _back_to_back if not timing.before and timing.queries is None else _with_steps_between
    with no_garbage_collection():
        started = time.monotonic_ns()
        wall, perf = loop(timing)
        ended = time.monotonic_ns()
    return {"wall_ns": wall, "perf_run_us": perf, "started_ns": started, "ended_ns": ended}


def _back_to_back(timing: Timing) -> Any:
    name, calls, order, ends = timing.name, timing.calls, timing.order, timing.ends_ns
    clock = time.monotonic_ns
    wall: list[int] = []
    keep = wall.append
    for index in order:
        call = calls[index]
        begin = clock()
        code = call()
        end = clock()
        keep(end - begin)
        if code != 0:
            raise located(RknnFailure(name, code), len(wall) - 1)
        if end > ends:
            raise located(_too_late(wall, order), len(wall) - 1)
    return wall, None


def _with_steps_between(timing: Timing) -> Any:
    calls, before, queries, ends = timing.calls, timing.before, timing.queries, timing.ends_ns
    clock = time.monotonic_ns
    wall: list[int] = []
    perf: list[int] | None = None if queries is None else []
    number = at = 0
    try:
        for number, index in enumerate(timing.order):
            for at, step in before:  # noqa: B007 - the handler below tells where
                step(number)
            call = calls[index]
            begin = clock()
            code = call()
            end = clock()
            wall.append(end - begin)
            if code != 0:
                raise RknnFailure(timing.name, code)
            if end > ends:
                raise _too_late(wall, timing.order)
            if queries is not None and perf is not None:
                perf.append(queries[index]())
    except Exception as error:
        raise located(error, *((number, at) if len(wall) == number else (number,))) from error
    return wall, perf


def _too_late(wall: Sequence[int], order: bytes) -> DeadlineFailure:
    return DeadlineFailure(f"out of time after {len(wall)} of {len(order)} timed runs")
