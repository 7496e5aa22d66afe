"""MEM-06 and MEM-14: weights from outside, duplicates, weights shared between contexts (guide, zero copy)."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_MEM_ALLOC_OUTSIDE, RKNN_FLAG_SHARE_WEIGHT_MEM
from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import TO_DEVICE, LoadedModel, Npu, Program, ZeroCopy
from pytest_rknpu.session.artifacts import artifact_for
from pytest_rknpu.session.sensitivity import LINE

POISON = 0xA7


@pytest.mark.requirement("MEM-06", "MEM-14")
@pytest.mark.parametrize("offset", [0, 4096], ids=lambda value: f"offset{value}")
def test_weights_from_outside_equal_the_runtimes_own(
    npu: Npu, chain: LoadedModel, effort: Effort, offset: int
) -> None:
    """RKNN_FLAG_MEM_ALLOC_OUTSIDE: the application syncs the weights TO_DEVICE once, then it runs n times."""
    inputs = npu.random_inputs(chain, 2)
    io = ZeroCopy("a", chain, flags=RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    program = Program()
    _open_outside(program, io, offset, synced=True)
    rounds = effort.rounds(20)
    with program.repeat(rounds):
        program.write_cycle(io.input, inputs)
        program.run(io.context)
        io.compare_output(program, npu.reference(chain, inputs), "output")
    values = npu.execute(program)
    npu.require_same(values["output"], "with weights in memory from outside, synced TO_DEVICE")
    npu.record_bound(rounds)


@pytest.mark.requirement("MEM-14")
@pytest.mark.expects_runtime_errors
def test_control_without_syncing_the_weights(npu: Npu, chain: LoadedModel) -> None:
    """Control, measured and not judged: how much of the output is wrong where the sync is left out."""
    data = npu.random_inputs(chain, 1)[0]
    expected = npu.reference(chain, [data])[0]
    io = ZeroCopy("a", chain, flags=RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    program = Program()
    _open_outside(program, io, 0, synced=False)
    program.write(io.input, data)
    program.run(io.context, expect="any", save="code")
    program.read(io.output, "output")
    values = npu.execute(program)
    starts = range(0, len(expected), LINE)
    wrong = sum(values["output"][at : at + LINE] != expected[at : at + LINE] for at in starts)
    npu.record.measure("code of rknn_run with unsynced weights", values["code"])
    npu.record.measure("wrong lines with unsynced weights", wrong, "lines")
    npu.record.measure("lines", len(starts), "lines")


def _open_outside(program: Program, io: ZeroCopy, offset: int, *, synced: bool) -> None:
    """Record a context whose weight and internal memory are the application's, poisoned beforehand."""
    sizes = {
        "weights": io.model.description.weight_size,
        "internal": io.model.description.internal_size,
    }
    program.init(io.context, io.model.sha256, flags=io.flags)
    for name, size in sizes.items():
        program.create_mem(f"{name} whole", io.context, offset + size)
        program.fill(f"{name} whole", POISON)
        program.sync(f"{name} whole", TO_DEVICE, io.context)
        program.import_fd(name, io.context, f"{name} whole", size, offset=offset)
    program.bind_weights(io.context, "weights")
    if synced:  # the library fills them on the CPU and does not sync them (seen with 1.5.2 and 1.6.0)
        program.sync("weights whole", TO_DEVICE, io.context)
    program.bind_internal(io.context, "internal")
    io.bind(program)


@pytest.mark.requirement("MEM-06")
def test_a_duplicate_and_its_parent_take_turns(npu: Npu, chain: LoadedModel, effort: Effort) -> None:
    """rknn_dup_context of a context that has run: both equal a full one, with free memory refilled."""
    npu.require_function("rknn_dup_context")
    inputs = npu.random_inputs(chain, 3)
    expected = npu.reference(chain, inputs)
    parent, duplicate = ZeroCopy("parent", chain), ZeroCopy("duplicate", chain)
    program = Program()
    parent.open(program)
    program.write(parent.input, inputs[0])
    program.run(parent.context)
    parent.compare_output(program, [expected[0]], "before")
    program.dup(duplicate.context, parent.context)
    # Whatever the duplication gave back is somebody else's from now on.
    program.create_mem("refill", parent.context, chain.description.weight_size)
    program.fill("refill", POISON)
    if npu.can_sync:
        program.sync("refill", TO_DEVICE, parent.context)
    duplicate.bind(program)
    with program.repeat(effort.rounds(20)):
        for io in (parent, duplicate):
            program.write_cycle(io.input, inputs)
            program.run(io.context)
            io.compare_output(program, expected, io.context)
    values = npu.execute(program)
    npu.require_same(values["before"], "the context before it was duplicated")
    npu.require_same(values["parent"], "the parent after rknn_dup_context")
    npu.require_same(values["duplicate"], "the duplicate")


@pytest.mark.requirement("MEM-06")
def test_contexts_that_share_weights(npu: Npu, chain: LoadedModel, effort: Effort) -> None:
    """RKNN_FLAG_SHARE_WEIGHT_MEM: a model built with remove_weight uses the first context's weights."""
    try:
        artifact = artifact_for(npu.session.board, chain.name, remove_weight=True)
    except ToolkitError as error:
        pytest.skip(f"no model without weights: {error}")
    bare = npu.session.store_model(artifact)
    inputs = npu.random_inputs(chain, 3)
    expected = npu.reference(chain, inputs)
    full, sharing = ZeroCopy("full", chain), ZeroCopy("sharing", chain)
    program = Program()
    full.open(program)
    program.init(sharing.context, bare, flags=RKNN_FLAG_SHARE_WEIGHT_MEM, share_weights_of=full.context)
    sharing.bind(program)
    with program.repeat(effort.rounds(20)):
        for io in (sharing, full):
            program.write_cycle(io.input, inputs)
            program.run(io.context)
            io.compare_output(program, expected, io.context)
    sharing.close(program)  # the context that owns the weights goes last
    full.close(program)
    values = npu.execute(program)
    npu.require_same(values["sharing"], "the context with another's weights")
    npu.require_same(values["full"], "the context whose weights are shared")
    npu.record.measure("model without weights", len(artifact), "B")
