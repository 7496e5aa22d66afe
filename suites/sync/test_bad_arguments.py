"""SYNC-13: bad arguments of rknn_mem_sync give an error code, not a crash; each in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rknpu.session import LoadedModel, Npu, Program, ZeroCopy, require_refused

CONTEXT: dict[str, Any] = {"context": "a"}
MEMORY: dict[str, Any] = {"memory": "a input 0"}
NULL: dict[str, Any] = {"null": True}


@pytest.mark.requirement("SYNC-13")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([CONTEXT, NULL, 1], id="null-memory"),
        pytest.param([CONTEXT, MEMORY, 0], id="mode-0"),
        pytest.param([CONTEXT, MEMORY, 4], id="mode-4"),
        pytest.param([CONTEXT, MEMORY, 0x7FFFFFFF], id="mode-huge"),
    ],
)
def test_bad_arguments_are_refused(npu: Npu, model: LoadedModel, arguments: list[Any]) -> None:
    """NULL memory and unknown modes."""
    npu.require_function("rknn_mem_sync")
    npu.require_health()  # what it must still give later is asked for before
    io = ZeroCopy("a", model)
    program = Program()
    with program.child("child"):
        io.open(program)
        program.call("rknn_mem_sync", arguments, "code")
    child = npu.execute(program)["child"]
    require_refused(npu, child, "code", f"rknn_mem_sync with {arguments}")
    npu.require_health()
