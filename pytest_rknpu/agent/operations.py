"""The operations of a command list as a table: keys, their checks and defaults, and who builds the step."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from . import calls, child_operation, control, cpu, load, memory_calls, raw_call, timing
from .fields import (
    ANY_CODE,
    MAXIMUM_RUNS,
    MAXIMUM_THRASH,
    SUCCESS,
    U32,
    U64,
    Field,
    any_value,
    blob,
    blob_list,
    boolean,
    command_list,
    expectation,
    group_list,
    integer,
    integer_list,
    name,
    name_list,
    names,
    optional,
    record_list,
    seconds,
    sha256,
)


class Operation(NamedTuple):
    """``build(arguments, compiler)`` checks what the fields cannot and returns the step to run."""

    fields: dict[str, Field]
    build: Callable[[dict[str, Any], Any], Callable[[int], Any]]


_NAME = Field(name)
_NULLABLE = Field(optional(name), None)
_SAVE = {"save": Field(optional(name), None)}
_CALL = {**_SAVE, "expect": Field(expectation, SUCCESS)}
_OFFSET = Field(integer(0, U64), 0)
_LENGTH = Field(optional(integer(0, U64)), None)
_DATA = {"data": Field(optional(blob), None), "cycle": Field(optional(blob_list), None)}

_INPUTS = record_list(
    {
        "index": Field(integer(0, U32)),
        "data": Field(blob),
        "type": Field(integer(0, U32)),
        "fmt": Field(integer(0, U32)),
        "pass_through": Field(boolean, False),
    }
)
_OUTPUTS = record_list({"index": Field(integer(0, U32)), "want_float": Field(boolean)})

_CALLS: dict[str, Operation] = {
    "init": Operation(
        {
            "context": _NAME,
            "model": Field(optional(sha256), None),
            "path_of": Field(optional(sha256), None),
            "data": Field(optional(blob), None),
            "flags": Field(integer(0, U32), 0),
            "share_weights_of": _NULLABLE,
        },
        calls.build_init,
    ),
    "dup": Operation({"context": _NAME, "source": _NAME}, calls.build_dup),
    "destroy": Operation({"context": _NAME}, calls.build_destroy),
    "query": Operation(
        {"context": _NAME, "query": Field(integer(0, U32)), "index": Field(integer(0, U32), 0)},
        calls.build_query,
    ),
    "create_mem": Operation(
        {
            "memory": _NAME,
            "context": _NULLABLE,
            "size": Field(integer(0, U64)),
            "alloc_flags": Field(optional(integer(0, U64)), None),
        },
        memory_calls.build_create_mem,
    ),
    "import_fd": Operation(
        {
            "memory": _NAME,
            "context": _NULLABLE,
            "source": _NAME,
            "size": Field(integer(0, U32)),
            "offset": Field(integer(-(2**31), 2**31 - 1), 0),
        },
        memory_calls.build_import_fd,
    ),
    "destroy_mem": Operation({"memory": _NAME, "context": _NULLABLE}, memory_calls.build_destroy_mem),
    "bind": Operation({"context": _NAME, "memory": _NAME, "attr": Field(any_value)}, calls.build_bind),
    "bind_weights": Operation({"context": _NAME, "memory": _NAME}, calls.build_bind_weights),
    "bind_internal": Operation({"context": _NAME, "memory": _NAME}, calls.build_bind_internal),
    "set_core_mask": Operation({"context": _NAME, "mask": Field(integer(0, U32))}, calls.build_set_core_mask),
    "set_inputs": Operation({"context": _NAME, "inputs": Field(_INPUTS)}, calls.build_set_inputs),
    "run": Operation({"context": _NAME}, calls.build_run),
    "get_outputs": Operation({"context": _NAME, "outputs": Field(_OUTPUTS)}, calls.build_get_outputs),
    "sync": Operation(
        {"memory": _NAME, "context": _NULLABLE, "mode": Field(integer(0, U32))}, calls.build_sync
    ),
}

_OTHERS: dict[str, Operation] = {
    "write": Operation({"memory": _NAME, "offset": _OFFSET, **_DATA}, cpu.build_write),
    "fill": Operation(
        {"memory": _NAME, "offset": _OFFSET, "length": _LENGTH, "byte": Field(integer(0, 255))},
        cpu.build_fill,
    ),
    "read": Operation({"memory": _NAME, "offset": _OFFSET, "length": _LENGTH}, cpu.build_read),
    "digest": Operation({"memory": _NAME, "offset": _OFFSET, "length": _LENGTH}, cpu.build_digest),
    "compare": Operation(
        {"memory": _NAME, "offset": _OFFSET, **_DATA, "mask": Field(optional(blob), None), "save": _NAME},
        cpu.build_compare,
    ),
    "thrash": Operation({"size": Field(integer(1, MAXIMUM_THRASH))}, cpu.build_thrash),
    "timestamp": Operation({}, cpu.build_timestamp),
    "resources": Operation({}, cpu.build_resources),
    "repeat": Operation(
        {"count": Field(integer(0, U32)), "commands": Field(command_list)}, control.build_repeat
    ),
    "threads": Operation({"groups": Field(group_list)}, control.build_threads),
    "child": Operation(
        {
            "commands": Field(command_list),
            "deadline_s": Field(seconds, 20.0),
            "inherits": Field(names, []),
        },
        child_operation.build_child,
    ),
    "call": Operation(
        {
            "function": _NAME,
            "arguments": Field(any_value),
            "expect": Field(expectation, ANY_CODE),
        },
        raw_call.build_call,
    ),
}

_COUNT = Field(integer(1, MAXIMUM_RUNS))
_TIMED = {
    "count": Field(optional(integer(1, MAXIMUM_RUNS)), None),
    "order": Field(optional(blob), None),
    "warm_up": Field(integer(0, MAXIMUM_RUNS), 0),
    "before": Field(command_list, []),
}

_TIMING: dict[str, Operation] = {
    "time_runs": Operation(
        {"contexts": Field(name_list), "perf_run": Field(boolean, False), **_TIMED}, timing.build_time_runs
    ),
    "time_syncs": Operation(
        {"memory": _NAME, "context": _NULLABLE, "modes": Field(integer_list), **_TIMED},
        timing.build_time_syncs,
    ),
    "time_no_op": Operation({"count": _COUNT, "warm_up": _TIMED["warm_up"]}, timing.build_time_no_op),
    "under_load": Operation(
        {
            "processes": Field(integer(0, 64), 0),
            "memory_bytes": Field(integer(4096, MAXIMUM_THRASH), 2**24),
            "commands": Field(command_list),
        },
        load.build_under_load,
    ),
}

OPERATIONS: dict[str, Operation] = {
    **{op: Operation({**entry.fields, **_CALL}, entry.build) for op, entry in _CALLS.items()},
    **{op: Operation({**_SAVE, **entry.fields}, entry.build) for op, entry in {**_OTHERS, **_TIMING}.items()},
}
"""All operations of docs/command-lists.md; each takes ``save``, those that call the runtime ``expect``."""
