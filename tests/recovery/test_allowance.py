"""How long a list may take where nobody says: enough for what it does, and never for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.session import Program
from pytest_rknpu.session.allowance import (
    BASE_SECONDS,
    LONGEST_SECONDS,
    child_deadline_for,
    command_at,
    deadline_for,
)


def looping(count: int) -> Program:
    program = Program()
    with program.repeat(count):
        program.run("a")
    return program


@given(st.integers(0, 10**5), st.integers(0, 10**5))
def test_more_rounds_get_more_time_and_never_less_than_a_minute(one: int, other: int) -> None:
    shorter, longer = sorted((one, other))
    assert BASE_SECONDS <= deadline_for(looping(shorter).plain()) <= deadline_for(looping(longer).plain())


def test_every_round_is_counted() -> None:
    assert deadline_for(looping(30_000).plain()) == pytest.approx(BASE_SECONDS + 3000)
    assert deadline_for(looping(2**32 - 1).plain()) == LONGEST_SECONDS


def test_a_child_has_time_for_what_it_does_and_its_parent_for_the_child() -> None:
    program = Program()
    with program.child("child"):
        program.include(looping(1000))
    (command,) = program.plain()["commands"]
    assert command["deadline_s"] == child_deadline_for(looping(1000).plain()) == pytest.approx(120)
    assert deadline_for(program.plain()) > BASE_SECONDS + command["deadline_s"]
    with program.child("given", deadline_s=7):
        pass
    assert program.plain()["commands"][1]["deadline_s"] == 7


def test_timed_runs_are_counted_by_number_or_order() -> None:
    by_count, by_order = Program(), Program()
    by_count.time_runs(["a"], "t", count=500, warm_up=100)
    by_order.time_runs(["a", "b"], "t", order=bytes(500), warm_up=50)
    assert deadline_for(by_count.plain()) == deadline_for(by_order.plain()) == BASE_SECONDS + 60


def test_a_command_is_found_by_its_path() -> None:
    program = Program()
    program.timestamp("t")
    with program.repeat(9):
        program.timestamp("u")
        with program.threads() as threads:
            with threads.group():
                pass
            with threads.group():
                program.thrash(1)
                program.run("a")
    with program.under_load(memory_bytes=1), program.child("c"):
        program.run("a")
    plain = program.plain()
    found = {(0,): "timestamp", (1, 8, 0): "timestamp", (1, 8, 1): "threads", (1, 8, 1, 1, 1): "run"}
    found |= {(2, 0): "child", (1,): "repeat"}
    assert {path: command_at(plain, path) for path in found} == found
    for wrong in ((), (9,), (1, 0, 7), (1, 8, 1, 9, 0)):
        command_at(plain, wrong)  # whatever an agent says does not matter
