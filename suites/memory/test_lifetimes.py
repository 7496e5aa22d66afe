"""MEM-07 and MEM-08: what is destroyed disturbs nobody, and everything is given back."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    ZeroCopy,
    code_name,
    require_survived,
)
from pytest_rknpu.session.artifacts import artifact_for
from pytest_rknpu.session.leaks import UNITS, growth_of
from pytest_rknpu.session.zero_copy import bound_attr

WARM_UP = 5
MODEL_HEAD = 64  # bytes of a model file that are no model
WINDOWS = 3  # equal shares of the rounds, with a look at the board after each


@pytest.mark.requirement("MEM-07")
def test_destroying_one_context_leaves_another_working(
    npu: Npu, chain: LoadedModel, wide: LoadedModel
) -> None:
    """Destroy A, refill the memory that it gave back, run B: B is right before and after."""
    first, second = ZeroCopy("a", wide), ZeroCopy("b", chain)
    inputs = npu.random_inputs(chain, 2)
    expected = npu.reference(chain, inputs)
    program = Program()
    first.open(program)
    second.open(program)
    program.write(first.input, npu.random_inputs(wide, 1)[0])
    program.run(first.context)
    program.write(second.input, inputs[0])
    program.run(second.context)
    second.compare_output(program, [expected[0]], "before")
    first.close(program)
    for number in range(8):
        program.create_mem(f"refill {number}", second.context, wide.description.internal_size)
        program.fill(f"refill {number}", 0xEE)
        if npu.can_sync:
            program.sync(f"refill {number}", TO_DEVICE, second.context)
    program.write(second.input, inputs[1])
    program.run(second.context)
    second.compare_output(program, [expected[1]], "after")
    values = npu.execute(program)
    npu.require_same(values["before"], "B beside A")
    npu.require_same(values["after"], "B after A was destroyed and its memory refilled")


@pytest.mark.requirement("MEM-07")
def test_destroying_the_parent_leaves_a_duplicate_working(npu: Npu, chain: LoadedModel) -> None:
    """rknn_dup_context, destroy the parent, run the duplicate."""
    npu.require_function("rknn_dup_context")
    parent, duplicate = ZeroCopy("parent", chain), ZeroCopy("duplicate", chain)
    inputs = npu.random_inputs(chain, 2)
    expected = npu.reference(chain, inputs)
    program = Program()
    parent.open(program)
    program.dup(duplicate.context, parent.context)
    duplicate.bind(program)
    for io, data, output, saved in (
        (parent, inputs[0], expected[0], "parent"),
        (duplicate, inputs[1], expected[1], "duplicate"),
    ):
        program.write(io.input, data)
        program.run(io.context)
        io.compare_output(program, [output], saved)
    parent.close(program)
    program.write(duplicate.input, inputs[0])
    program.run(duplicate.context)
    duplicate.compare_output(program, [expected[0]], "alone")
    values = npu.execute(program)
    npu.require_same(values["parent"], "the parent beside its duplicate")
    npu.require_same(values["duplicate"], "the duplicate beside its parent")
    npu.require_same(values["alone"], "the duplicate after its parent was destroyed")


@pytest.mark.requirement("MEM-08")
@pytest.mark.parametrize("what", ["memory", "import", "context", "run"])
def test_rounds_give_everything_back(npu: Npu, chain: LoadedModel, effort: Effort, what: str) -> None:
    """n rounds of create and destroy bring back file descriptors, mappings and DMA bytes."""
    io = ZeroCopy("keeper", chain)
    rounds = max(WINDOWS, effort.rounds(60) // WINDOWS * WINDOWS)
    program = Program()
    io.open(program)
    program.create_mem("source", io.context, 8192)
    with program.repeat(WARM_UP):
        _one_round(program, io, what)
    program.resources("before")
    with program.repeat(WINDOWS):
        with program.repeat(rounds // WINDOWS):
            _one_round(program, io, what)
        program.resources("after")
    program.destroy_mem("source", io.context)
    io.close(program)
    values = npu.execute(program)
    _require_nothing_left(npu, [values["before"], *values["after"]], rounds, what)


def _require_nothing_left(npu: Npu, snapshots: list[dict[str, Any]], rounds: int, what: str) -> None:
    """Fail where a resource grows from snapshot to snapshot; the first is from before the ``rounds``."""
    leaked = []
    for resource, unit in UNITS.items():
        growth = growth_of(resource, snapshots, rounds)
        if growth is None:
            npu.record.note(f"{resource}: this board does not tell (debugfs takes root), not judged")
            continue
        npu.record.measure(f"growth of {resource}", growth.amount, unit)
        if growth.leaked:
            leaked.append(f"{resource} by {growth.amount}")
    if leaked:
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {rounds} rounds of {what} leave more {', '.join(leaked)} behind"
        )
    npu.record_bound(rounds)


@pytest.mark.requirement("MEM-08")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("refused", ["model", "binding"])
def test_rounds_of_refused_calls_give_everything_back(
    npu: Npu, chain: LoadedModel, effort: Effort, refused: str
) -> None:
    """The same where each round ends in an error code; in a child, since bad input may end the process."""
    io = ZeroCopy("keeper", chain)
    native = chain.description.inputs[0].native
    head = artifact_for(npu.session.board, chain.name)[:MODEL_HEAD]
    rounds = max(WINDOWS, effort.rounds(60) // WINDOWS * WINDOWS)

    def one_round(save: str) -> None:
        if refused == "model":
            program.init_data("passing", head, expect="any", save=save)
        else:
            program.bind(io.context, "small", bound_attr(native, "input"), expect="any", save=save)

    program = Program()
    with program.child("child"):
        io.open(program)
        program.create_mem("small", io.context, 64)
        with program.repeat(WARM_UP):
            one_round("warm-up codes")
        program.resources("before")
        with program.repeat(WINDOWS):
            with program.repeat(rounds // WINDOWS):
                one_round("codes")
            program.resources("after")
    values = require_survived(npu, npu.execute(program)["child"], f"refusing a {refused}")
    codes = set(values["codes"])
    npu.record.measure("codes", ", ".join(sorted(map(code_name, codes))))
    if 0 in codes:
        raise Inconclusive(f"a {refused} that should be refused was taken, so that no error path was walked")
    _require_nothing_left(npu, [values["before"], *values["after"]], rounds, f"refusing a {refused}")


def _one_round(program: Program, io: ZeroCopy, what: str) -> None:
    if what == "memory":
        program.create_mem("passing", io.context, 4096)
        program.destroy_mem("passing", io.context)
    elif what == "import":
        program.import_fd("passing", io.context, "source", 4096)
        program.destroy_mem("passing", io.context)
    elif what == "context":
        program.init("passing", io.model.sha256)
        program.destroy("passing")
    else:
        program.run(io.context)
