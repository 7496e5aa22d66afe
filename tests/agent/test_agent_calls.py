"""The operations that call the runtime, through a real shared object."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from pytest_rknpu.agent.abi import TensorFormat, TensorType

Run = Callable[..., Any]
MODEL = hashlib.sha256(b"FAKE model for the fake runtime").hexdigest()
INIT = {"op": "init", "context": "c", "model": MODEL}
TENSOR = 256
COUNT = bytes(range(TENSOR))
COUNT_PLUS_ONE = bytes((value + 1) % 256 for value in COUNT)


def test_a_query_gives_the_fields_by_the_headers_names(run: Run) -> None:
    values = run(
        INIT,
        {"op": "query", "context": "c", "query": 0, "save": "counts"},
        {"op": "query", "context": "c", "query": 1, "save": "input"},
        {"op": "query", "context": "c", "query": 5, "save": "versions"},
        {"op": "query", "context": "c", "query": 6, "save": "sizes"},
    )
    assert values["counts"] == {"n_input": 1, "n_output": 1, "code": 0}
    assert values["input"] == {
        "index": 0,
        "n_dims": 4,
        "dims": [1, 16, 4, 4],  # cut to n_dims: the fake writes a fifth
        "name": "input",
        "n_elems": 256,
        "size": 256,
        "fmt": 0,
        "type": 2,
        "qnt_type": 2,
        "fl": -3,
        "zp": -128,
        "scale": 0.5,
        "w_stride": 4,
        "size_with_stride": 256,
        "pass_through": 0,
        "h_stride": 7,
        "code": 0,
    }
    assert values["versions"] == {"api_version": "fake 1.0", "drv_version": "fake 0.9", "code": 0}
    assert values["sizes"]["total_dma_allocated_size"] == 2**33
    assert len(values["sizes"]["reserved"]) == 10


def test_queries_with_pointers_and_tables(run: Run) -> None:
    values = run(
        INIT,
        {"op": "query", "context": "c", "query": 3, "save": "report"},
        {"op": "query", "context": "c", "query": 4, "save": "time"},
        {"op": "query", "context": "c", "query": 13, "save": "range"},
    )
    assert values["report"]["perf_data"] == "a performance report"
    assert values["time"]["run_duration"] == 1234
    assert values["range"]["dyn_range"] == [[0, 1, 2], [10, 11, 12]]


def test_a_query_that_may_fail_gives_its_code(run: Run) -> None:
    values = run(
        INIT, {"op": "query", "context": "c", "query": 1, "index": 9, "expect": "any", "save": "answer"}
    )
    assert values["answer"]["code"] == -5
    assert values["answer"]["index"] == 9


def test_zero_copy_from_write_to_compare(bound: Run) -> None:
    values = bound(
        {"op": "write", "memory": "in", "data": "count"},
        {"op": "sync", "memory": "in", "context": "c", "mode": 1, "save": "sync"},
        {"op": "run", "context": "c", "save": "run"},
        {"op": "sync", "memory": "out", "mode": 2},
        {"op": "read", "memory": "out", "save": "bytes"},
        {"op": "digest", "memory": "out", "save": "digest"},
        {"op": "compare", "memory": "out", "data": "expected", "save": "verdict"},
        blobs={"count": COUNT, "expected": COUNT_PLUS_ONE},
    )
    assert values["bytes"] == COUNT_PLUS_ONE
    assert values["digest"] == hashlib.sha256(COUNT_PLUS_ONE).hexdigest()
    assert values["verdict"] == {"comparisons": 1, "mismatches": 0, "first": None}
    assert (values["sync"], values["run"]) == (0, 0)


def test_the_copying_api(run: Run) -> None:
    given = {"index": 0, "data": "count", "type": TensorType.RKNN_TENSOR_UINT8.value, "pass_through": False}
    values = run(
        INIT,
        {
            "op": "set_inputs",
            "context": "c",
            "inputs": [{**given, "fmt": TensorFormat.RKNN_TENSOR_NHWC.value}],
        },
        {"op": "run", "context": "c"},
        {
            "op": "get_outputs",
            "context": "c",
            "outputs": [{"index": 0, "want_float": False}],
            "save": "plain",
        },
        {"op": "get_outputs", "context": "c", "outputs": [{"index": 0, "want_float": True}], "save": "float"},
        {
            "op": "get_outputs",
            "context": "c",
            "outputs": [{"index": 1, "want_float": True}],
            "expect": ["RKNN_ERR_OUTPUT_INVALID"],
            "save": "refused",
        },
        blobs={"count": COUNT},
    )
    assert values["plain"] == [COUNT_PLUS_ONE]
    assert len(values["float"][0]) == 4 * TENSOR
    assert values["refused"] == -9


def test_a_model_by_path_by_data_and_with_shared_weights(run: Run) -> None:
    values = run(
        {"op": "init", "context": "path", "path_of": MODEL, "save": "path"},
        {"op": "init", "context": "data", "data": "model", "save": "data"},
        {"op": "init", "context": "slave", "data": "model", "share_weights_of": "data", "flags": 0x20},
        {"op": "query", "context": "slave", "query": 7, "save": "slave"},
        {"op": "query", "context": "data", "query": 7, "save": "master"},
        {"op": "dup", "context": "copy", "source": "data", "save": "copy"},
        {"op": "set_core_mask", "context": "data", "mask": 7, "save": "mask"},
        {"op": "destroy", "context": "copy", "save": "destroyed"},
        blobs={"model": b"FAKE other"},
    )
    assert values.pop("slave") == {"string": "shares weights, flags 0x20", "code": 0}
    assert values.pop("master") == {"string": "alone, flags 0x0", "code": 0}
    assert values == {"path": 0, "data": 0, "copy": 0, "mask": 0, "destroyed": 0}


def test_external_weight_and_internal_memory(bound: Run) -> None:
    values = bound(
        {"op": "bind_weights", "context": "c", "memory": "in", "save": "weights"},
        {"op": "bind_internal", "context": "c", "memory": "in", "save": "internal"},
    )
    assert values == {"weights": 0, "internal": 0}


def test_an_imported_memory_begins_at_base_plus_offset(bound: Run) -> None:
    values = bound(
        {"op": "create_mem", "memory": "pool", "context": "c", "size": 4096, "save": "pool"},
        {
            "op": "import_fd",
            "memory": "window",
            "context": "c",
            "source": "pool",
            "size": 300,
            "offset": 100,
            "save": "w",
        },
        {
            "op": "import_fd",
            "memory": "nested",
            "context": "c",
            "source": "window",
            "size": 16,
            "offset": 110,
        },
        {"op": "fill", "memory": "pool", "byte": 0},
        {"op": "fill", "memory": "window", "byte": 7},
        {"op": "fill", "memory": "nested", "byte": 9},
        {"op": "read", "memory": "pool", "save": "bytes"},
        {"op": "read", "memory": "window", "offset": 8, "length": 4, "save": "part"},
    )
    expected = bytearray(4096)
    expected[100:400] = b"\7" * 300
    expected[110:126] = b"\x09" * 16  # an offset always counts from the dma-buf's beginning
    assert values["bytes"] == bytes(expected)
    assert values["part"] == b"\7\7\x09\x09"
    assert (values["w"]["offset"], values["w"]["flags"], values["w"]["size"]) == (100, 2, 300)
    assert values["w"]["fd"] == values["pool"]["fd"]


def test_the_cpu_cannot_leave_the_memory_that_an_import_is_made_of(bound: Run) -> None:
    error = bound(
        {"op": "create_mem", "memory": "pool", "context": "c", "size": 4096},
        {
            "op": "import_fd",
            "memory": "window",
            "context": "c",
            "source": "pool",
            "size": 4096,
            "offset": 4000,
        },
        {"op": "read", "memory": "window", "length": 97, "save": "bytes"},
        fails=True,
    )
    assert (error["kind"], error["at"]) == ("program", [2])
    assert "96 bytes" in error["message"]


@pytest.mark.parametrize("expect", [None, "success", ["RKNN_SUCC", "RKNN_ERR_CTX_INVALID"]])
def test_an_unexpected_code_stops_the_program(bound: Run, expect: Any) -> None:
    command = {"op": "sync", "memory": "in", "mode": 9}
    error = bound(
        {"op": "timestamp", "save": "before"},
        command if expect is None else {**command, "expect": expect},
        fails=True,
    )
    assert error == {
        "kind": "rknn",
        "message": "rknn_mem_sync returned -5 (RKNN_ERR_PARAM_INVALID)",
        "at": [1],
        "call": "rknn_mem_sync",
        "code": -5,
        "code_name": "RKNN_ERR_PARAM_INVALID",
    }


@pytest.mark.parametrize(
    "expect", ["any", ["RKNN_ERR_PARAM_INVALID"], ["RKNN_SUCC", "RKNN_ERR_PARAM_INVALID"]]
)
def test_an_expected_code_is_a_value(bound: Run, expect: Any) -> None:
    values = bound({"op": "sync", "memory": "in", "mode": 9, "expect": expect, "save": "code"})
    assert values == {"code": -5}


def test_memory_that_cannot_be_had_is_null(bound: Run) -> None:
    command = {"op": "create_mem", "memory": "none", "context": "c", "size": 0}
    error = bound(command, fails=True)
    assert (error["kind"], error["call"]) == ("null", "rknn_create_mem")
    assert bound({**command, "expect": "any", "save": "nothing"}) == {"nothing": None}
    assert bound({"op": "fill", "memory": "none", "byte": 1}, fails=True)["kind"] == "program"


def test_memory_without_an_address_is_not_for_the_cpu(bound: Run) -> None:
    bound({"op": "create_mem", "memory": "far", "context": "c", "size": 77})
    error = bound({"op": "fill", "memory": "far", "length": 1, "byte": 1}, fails=True)
    assert "memory 'far' of 0 bytes" in error["message"]


def test_a_function_that_the_library_lacks_is_named_before_anything_runs(run: Run) -> None:
    error = run(
        INIT,
        {"op": "create_mem", "memory": "m", "context": "c", "size": 16, "alloc_flags": 2},
        fails=True,
    )
    assert (error["kind"], error["call"], error["at"]) == ("missing-function", "rknn_create_mem2", [1])
    run(INIT)  # the context was not made: nothing ran


def test_a_context_whose_init_failed_does_not_exist(run: Run) -> None:
    bad = {"op": "init", "context": "bad", "data": "noise", "expect": "any", "save": "code"}
    assert run(bad, blobs={"noise": b"noise"}) == {"code": -6}
    assert run({"op": "run", "context": "bad"}, fails=True)["kind"] == "program"
    # Whether it exists cannot be told beforehand within one program, so it is told when it is used.
    error = run(bad, {"op": "run", "context": "bad"}, blobs={"noise": b"noise"}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [1])
    assert run(
        bad, {**bad, "data": "model", "save": "again"}, blobs={"noise": b"noise", "model": b"FAKE"}
    ) == {
        "code": -6,
        "again": 0,
    }


def test_names_can_be_used_again_after_destroy(run: Run) -> None:
    destroy = {"op": "destroy", "context": "c"}
    run(INIT, destroy, INIT, destroy)
    run({"op": "repeat", "count": 20, "commands": [INIT, destroy]})


def test_reset_destroys_and_names_what_is_left(agent: Callable[..., Any], bound: Run) -> None:
    assert agent("reset")["left_behind"] == ["in", "out", "c"]
    assert agent("reset")["left_behind"] == []
    bound({"op": "init", "context": "c", "data": "model"}, blobs={"model": b"FAKE"})


def test_reset_names_what_it_could_not_destroy(agent: Callable[..., Any], bound: Run) -> None:
    bound({"op": "destroy", "context": "c"})
    reply = agent("reset")
    assert reply["left_behind"] == ["in", "out"]
    assert reply["not_destroyed"] == {"in": "RKNN_ERR_CTX_INVALID", "out": "RKNN_ERR_CTX_INVALID"}


def test_an_attribute_can_be_changed_before_it_is_bound(bound: Run) -> None:
    attribute = {
        "name": "output",
        "size_with_stride": TENSOR,
        "dims": [1, 2],
        "scale": 1,
        "zp": -1,
        "code": 0,
    }
    bound({"op": "bind", "context": "c", "memory": "in", "attr": attribute})
    error = bound(
        {"op": "bind", "context": "c", "memory": "in", "attr": {**attribute, "size_with_stride": 257}},
        fails=True,
    )
    assert error["code_name"] == "RKNN_ERR_PARAM_INVALID"
