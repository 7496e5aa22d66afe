"""Malformed programs and requests are refused with the place and the reason, and nothing of them runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fuzzing import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_rknpu.agent.operations import OPERATIONS

Run = Callable[..., Any]
Ask = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("not a dict", "unknown operation None"),
        ({}, "unknown operation None"),
        ({"op": "brew"}, "unknown operation 'brew'"),
        ({"op": ["run"]}, "unknown operation ['run']"),
        ({"op": "run"}, "key 'context' is missing"),
        ({"op": "run", "context": "c", "contxt": 1}, "unknown keys 'contxt'"),
        ({"op": "run", "context": 3}, "expected a name"),
        ({"op": "run", "context": ""}, "expected a name"),
        ({"op": "run", "context": "d"}, "context 'd' is not known here; there are ['c']"),
        ({"op": "run", "context": "c", "expect": "maybe"}, "key 'expect'"),
        ({"op": "run", "context": "c", "expect": []}, "key 'expect'"),
        ({"op": "run", "context": "c", "expect": ["RKNN_ERR_TEA"]}, "unknown code names ['RKNN_ERR_TEA']"),
        ({"op": "timestamp", "expect": "any"}, "unknown keys 'expect'"),
        ({"op": "init", "context": "n"}, "give one of model, path_of and data"),
        (
            {"op": "init", "context": "n", "data": "word", "model": "0" * 64},
            "give one of model, path_of and data",
        ),
        ({"op": "init", "context": "n", "model": "0" * 64}, "is not stored on the board"),
        ({"op": "init", "context": "n", "model": "../../etc/passwd"}, "sha256"),
        ({"op": "init", "context": "c", "data": "word"}, "context 'c' exists already"),
        ({"op": "init", "context": "n", "data": "word", "flags": -1}, "key 'flags'"),
        ({"op": "init", "context": "n", "data": "word", "share_weights_of": "m"}, "context 'm' is not known"),
        ({"op": "query", "context": "c", "query": 99}, "query 99 has no structure"),
        ({"op": "query", "context": "c", "query": True}, "key 'query'"),
        ({"op": "create_mem", "memory": "in", "context": "c", "size": 4}, "memory 'in' exists already"),
        ({"op": "create_mem", "memory": "n", "context": "c", "size": 2**32}, "32-bit size"),
        (
            {"op": "create_mem", "memory": "n", "context": "c", "size": 4, "expect": ["RKNN_ERR_FAIL"]},
            "returns a pointer",
        ),
        (
            {"op": "import_fd", "memory": "n", "context": "c", "source": "x", "size": 4},
            "memory 'x' is not known",
        ),
        (
            {"op": "import_fd", "memory": "n", "context": "c", "source": "in", "size": 4, "offset": 2**31},
            "key 'offset'",
        ),
        ({"op": "bind", "context": "c", "memory": "in", "attr": 5}, "key 'attr': expected a dict"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"colour": 1}}, "no field 'colour'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"size": -1}}, "field 'size'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"fl": 128}}, "field 'fl'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"size": 1.0}}, "field 'size'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"scale": "x"}}, "field 'scale'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"dims": [1] * 17}}, "field 'dims'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"dims": [2**32]}}, "field 'dims'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"name": "x" * 256}}, "field 'name'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"name": "a\0b"}}, "field 'name'"),
        ({"op": "bind", "context": "c", "memory": "in", "attr": {"name": "\udc80"}}, "field 'name'"),
        ({"op": "set_inputs", "context": "c", "inputs": []}, "key 'inputs'"),
        (
            {
                "op": "set_inputs",
                "context": "c",
                "inputs": [{"index": 0, "data": "none", "type": 3, "fmt": 1}],
            },
            "blob",
        ),
        ({"op": "get_outputs", "context": "c", "outputs": [{"index": 0}]}, "'want_float' is missing"),
        ({"op": "get_outputs", "context": "c", "outputs": [{"index": 0, "want_float": 2}]}, "a boolean"),
        ({"op": "sync", "memory": "in", "mode": "to"}, "key 'mode'"),
        ({"op": "write", "memory": "in"}, "give one of data and cycle"),
        ({"op": "write", "memory": "in", "data": "word", "cycle": ["word"]}, "give one of data and cycle"),
        ({"op": "write", "memory": "in", "cycle": []}, "key 'cycle'"),
        ({"op": "write", "memory": "in", "offset": -1, "data": "word"}, "key 'offset'"),
        ({"op": "fill", "memory": "in", "byte": 256}, "key 'byte'"),
        ({"op": "compare", "memory": "in", "data": "word"}, "key 'save' is missing"),
        ({"op": "thrash", "size": 2**40}, "key 'size'"),
        ({"op": "repeat", "count": -1, "commands": []}, "key 'count'"),
        ({"op": "repeat", "count": 1, "commands": {}}, "key 'commands'"),
        ({"op": "threads", "groups": []}, "key 'groups'"),
        ({"op": "child", "commands": [], "deadline_s": 0}, "key 'deadline_s'"),
        ({"op": "child", "commands": [], "deadline_s": float("nan")}, "key 'deadline_s'"),
    ],
)
def test_a_malformed_command_is_refused_with_its_reason(bound: Run, command: Any, reason: str) -> None:
    error = bound({"op": "timestamp", "save": "t"}, command, blobs={"word": b"word"}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [1])
    assert reason in error["message"]


@pytest.mark.parametrize(
    "program",
    [
        None,
        [],
        {},
        {"commands": None},
        {"commands": [], "blobs": {"x": "text"}},
        {"commands": [], "blobs": {1: b""}},
        {"commands": [], "blobs": [], "more": 1},
    ],
)
def test_a_malformed_program_is_refused(agent: Ask, program: Any) -> None:
    reply = agent("execute", program=program)
    assert not reply["ok"]
    assert reply["error"]["kind"] == "program"


def test_lists_can_be_nested_but_not_without_end(bound: Run) -> None:
    def nested(depth: int) -> dict[str, Any]:
        commands = [nested(depth - 1)] if depth else [{"op": "timestamp"}]
        return {"op": "repeat", "count": 1, "commands": commands}

    bound(nested(10))
    assert bound(nested(40), fails=True)["kind"] == "program"
    assert bound({"op": "child", "commands": [nested(15)]}, fails=True)["kind"] == "program"


def test_two_commands_must_not_save_under_one_name(bound: Run) -> None:
    error = bound({"op": "timestamp", "save": "t"}, {"op": "timestamp", "save": "t"}, fails=True)
    assert (error["kind"], error["at"]) == ("program", [1])


@pytest.mark.parametrize(
    "request_message",
    [
        None,
        [],
        {},
        {"request": 1},
        {"request": "dance"},
        {"request": "probe", "more": 1},
        {"request": "start"},
        {"request": "start", "library": "librknnrt.so"},
        {"request": "start", "library": {"kind": "shared-object", "path": ""}},
        {"request": "start", "library": {"kind": "python", "entry": "os"}},
        {"request": "start", "library": {"kind": "python", "entry": "os:getcwd", "context_bits": 16}},
        {"request": "has_models", "hashes": ["../x"]},
        {"request": "put_model", "sha256": "0" * 64, "data": b"other bytes"},
        {"request": "put_model", "sha256": "0" * 64, "data": "text"},
    ],
)
def test_a_malformed_request_is_refused(agent: Ask, request_message: Any) -> None:
    handle = agent.__closure__[0].cell_contents.handle  # type: ignore[attr-defined]
    reply = handle(request_message)
    assert reply["ok"] is False
    assert reply["error"]["kind"] == "program"


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
# Values that often fit, so that the fuzzing gets past the first check; sizes that cannot exhaust the machine.
likely = st.sampled_from(["c", "in", "out", "x", "b", ["b"], 0, 1, 2, 256, 300, True, None, "any", "success"])
# A child costs a process, a run writes where a bound import may have no memory: neither belongs in here.
fuzzed_operations = sorted(set(OPERATIONS) - {"child", "run", "thrash", "repeat", "threads"})


@st.composite
def commands(draw: st.DrawFn, depth: int = 2) -> Any:
    operation = draw(st.sampled_from(fuzzed_operations))
    keys = list(OPERATIONS[operation].fields)
    given_keys = draw(st.lists(st.sampled_from(keys), unique=True))
    command: dict[str, Any] = {"op": operation, **{key: draw(likely | plain) for key in given_keys}}
    if depth and draw(st.booleans()):
        inner = draw(st.lists(commands(depth - 1), max_size=3))
        return draw(
            st.sampled_from(
                [
                    {"op": "repeat", "count": 3, "commands": inner},
                    {"op": "threads", "groups": [inner, []]},
                ]
            )
        )
    return command


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(300)
)
@given(program=st.lists(commands() | plain, max_size=6))
def test_no_program_makes_the_agent_raise(agent: Ask, program: list[Any]) -> None:
    setup = [
        {"op": "init", "context": "c", "data": "m"},
        {"op": "create_mem", "memory": "in", "context": "c", "size": 300},
    ]
    reply = agent("execute", program={"commands": [*setup, *program], "blobs": {"m": b"FAKE", "b": b"bytes"}})
    if not reply["ok"]:
        assert reply["error"]["kind"] != "internal", reply["error"]["message"]
    assert agent("reset")["ok"]
