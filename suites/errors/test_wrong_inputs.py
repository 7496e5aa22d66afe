"""ERR-03: inputs and bindings of the wrong size, type or index are refused, each in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE, rknn_query_cmd
from pytest_rknpu.agent.abi import rknn_tensor_type as Type
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.session import (
    LoadedModel,
    Npu,
    Program,
    ZeroCopy,
    code_name,
    require_error,
    require_refused,
    require_survived,
)
from pytest_rknpu.session.references import passed_through
from pytest_rknpu.session.zero_copy import bound_attr

ANY = "any"


@pytest.mark.requirement("ERR-03")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("wrong", ["too-small", "empty", "index", "type"])
def test_wrong_input(npu: Npu, model: LoadedModel, wrong: str) -> None:
    """rknn_inputs_set."""
    npu.require_function("rknn_inputs_set")
    size = model.description.inputs[0].native_size
    entry: dict[str, Any] = passed_through(model, bytes(size))
    entry |= {
        "too-small": {"data": bytes(size // 2)},
        "empty": {"data": b""},
        "index": {"index": 7},
        "type": {"type": int(Type.RKNN_TENSOR_INT64), "pass_through": 0},
    }[wrong]
    program = Program()
    with program.child("child"):
        program.init("a", model.sha256)
        program.set_inputs("a", [entry], expect=ANY, save="code")
    require_refused(
        npu, npu.execute(program)["child"], "code", f"rknn_inputs_set with a wrong input ({wrong})"
    )
    npu.require_health()


@pytest.mark.requirement("ERR-03")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("tensor", ["input", "output"])
def test_binding_too_small_a_memory(npu: Npu, model: LoadedModel, tensor: str) -> None:
    """rknn_set_io_mem with a memory of half the size."""
    description = (model.description.inputs if tensor == "input" else model.description.outputs)[0]
    program = Program()
    with program.child("child"):
        program.init("a", model.sha256)
        program.create_mem("small", "a", description.native_size // 2)
        program.bind("a", "small", bound_attr(description.native, tensor), expect=ANY, save="code")
    require_refused(npu, npu.execute(program)["child"], "code", f"rknn_set_io_mem with half an {tensor}")
    npu.require_health()


@pytest.mark.requirement("ERR-03")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("query", ["RKNN_QUERY_INPUT_ATTR", "RKNN_QUERY_OUTPUT_ATTR"])
def test_query_of_an_index_that_is_not_there(npu: Npu, model: LoadedModel, query: str) -> None:
    """rknn_query with index 7 of a model with one input and one output."""
    program = Program()
    with program.child("child"):
        program.init("a", model.sha256)
        program.query("a", rknn_query_cmd[query], "answer", index=7, expect=ANY)
    what = f"{query} of index 7"
    values = require_survived(npu, npu.execute(program)["child"], what)
    require_error(npu, values["answer"]["code"], what)
    npu.require_health()


@pytest.mark.requirement("ERR-03")
@pytest.mark.expects_runtime_errors
def test_run_without_bound_memories(npu: Npu, model: LoadedModel) -> None:
    """rknn_run before any input or output is set."""
    program = Program()
    with program.child("child"):
        program.init("a", model.sha256)
        program.run("a", expect=ANY, save="code")
    require_refused(npu, npu.execute(program)["child"], "code", "rknn_run without inputs")
    npu.require_health()


@pytest.mark.requirement("ERR-04")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("use", ["rknn_run", "rknn_query", "rknn_destroy", "rknn_create_mem"])
def test_destroyed_context(npu: Npu, model: LoadedModel, use: str) -> None:
    """Use of a context after rknn_destroy."""
    context = {"context": "a"}
    arguments: dict[str, list[Any]] = {
        "rknn_run": [context, {"null": True}],
        "rknn_query": [context, int(rknn_query_cmd.RKNN_QUERY_IN_OUT_NUM), {"blob": "room"}, 8],
        "rknn_destroy": [context],
        "rknn_create_mem": [context, 4096],
    }
    program = Program()
    program.blob("room", bytes(8))
    io = ZeroCopy("a", model)
    with program.child("child"):
        io.open(program)
        program.call("rknn_destroy", [context], "destroyed")
        program.call(use, arguments[use], "code")
    what = f"{use} with a destroyed context"
    values = _after_destroying(npu, program, what)
    if use != "rknn_create_mem":
        require_error(npu, values["code"], what)
    elif values["code"] != 0:
        raise ConformanceFailure(f"board {npu.session.board.name}: {what} gave a memory, not NULL")
    npu.require_health()


def _after_destroying(npu: Npu, program: Program, what: str) -> dict[str, Any]:
    """Run the child; its values, once it is certain that what was to be destroyed is."""
    values = require_survived(npu, npu.execute(program)["child"], what)
    if values["destroyed"] != 0:
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {what}: destroying it returned {code_name(values['destroyed'])}"
        )
    return values


@pytest.mark.requirement("ERR-04")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("use", ["rknn_mem_sync", "rknn_set_internal_mem", "rknn_destroy_mem"])
def test_destroyed_memory(npu: Npu, model: LoadedModel, use: str) -> None:
    """Use of a memory after rknn_destroy_mem."""
    npu.require_function(use)
    context, memory = {"context": "a"}, {"memory": "passing"}
    arguments: dict[str, list[Any]] = {
        "rknn_mem_sync": [context, memory, 1],
        "rknn_set_internal_mem": [context, memory],
        "rknn_destroy_mem": [context, memory],
    }
    program = Program()
    with program.child("child"):
        program.init("a", model.sha256, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
        program.create_mem("passing", "a", model.description.internal_size)
        program.call("rknn_destroy_mem", [context, memory], "destroyed")
        program.call(use, arguments[use], "code")
    what = f"{use} with a destroyed memory"
    require_error(npu, _after_destroying(npu, program, what)["code"], what)
    npu.require_health()
