"""What a session leaves behind is destroyed in an order and with contexts that a real library survives."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rknpu.agent.failures import MissingFunction, ProgramFailure
from pytest_rknpu.agent.state import Context, Memory, State


class Recorder:
    """A binding whose functions only note their calls."""

    def __init__(self, lacks: str = "") -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._lacks = lacks

    def function(self, name: str) -> Any:
        if name == self._lacks:
            raise MissingFunction(name)

        def call(*arguments: int) -> int:
            self.calls.append((name, *arguments))
            return -4 if arguments[-1] == 302 else 0

        return call


def memory(name: str, pointer: int, context: str | None) -> Memory:
    return Memory(name, pointer, 0, 0, 0, -1, context)


def filled(binding: Any) -> State:
    state = State(binding)
    for name, handle in (("a", 11), ("b", 12)):
        state.contexts.add(name, Context(name, handle))
    for name, pointer, context in (
        ("pool", 301, "a"),
        ("window", 302, "b"),
        ("free", 303, None),
        ("lost", 304, "c"),
    ):
        state.memories.add(name, memory(name, pointer, context))
    return state


def test_memories_go_before_contexts_and_the_youngest_first() -> None:
    binding = Recorder()
    state = filled(binding)
    left, failed = state.destroy_all()
    assert binding.calls == [
        ("rknn_destroy_mem", 0, 304),  # its context is gone: a stale handle would crash the library
        ("rknn_destroy_mem", 0, 303),
        ("rknn_destroy_mem", 12, 302),
        ("rknn_destroy_mem", 11, 301),
        ("rknn_destroy", 12),
        ("rknn_destroy", 11),
    ]
    assert left == ["pool", "window", "free", "lost", "a", "b"]
    assert failed == {"window": "RKNN_ERR_MALLOC_FAIL"}
    assert state.destroy_all() == ([], {})


def test_a_library_that_cannot_destroy_is_told() -> None:
    _, failed = filled(Recorder(lacks="rknn_destroy")).destroy_all()
    assert "does not export rknn_destroy" in failed["a"]


def test_a_name_is_given_once() -> None:
    state = filled(Recorder())
    with pytest.raises(ProgramFailure, match="'a' exists already"):
        state.contexts.add("a", Context("a", 1))
    with pytest.raises(ProgramFailure, match=r"no context 'z'; there are \['a', 'b'\]"):
        state.handle("z")
    assert state.handle(None) == 0
