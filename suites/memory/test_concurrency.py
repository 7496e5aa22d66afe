"""MEM-11: contexts in several threads, in several processes and on several cores do not mix results."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import rknn_core_mask
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import TO_DEVICE, LoadedModel, Npu, Program, ZeroCopy, require_survived

WORKERS = 3
BACKGROUND = 0x33


@pytest.mark.requirement("MEM-11")
@pytest.mark.parametrize("relation", ["independent", "duplicates"])
def test_threads_do_not_mix(npu: Npu, chain: LoadedModel, effort: Effort, relation: str) -> None:
    """Each thread runs its own context on its own inputs; independent contexts, or duplicates of one."""
    if relation == "duplicates":
        npu.require_function("rknn_dup_context")
    contexts = [ZeroCopy(f"thread {number}", chain) for number in range(WORKERS)]
    program = Program()
    contexts[0].open(program)
    for io in contexts[1:]:
        if relation == "duplicates":
            program.dup(io.context, contexts[0].context)
            io.bind(program)
        else:
            io.open(program)
    _side_by_side(npu, program, contexts, effort.rounds(300), f"of {WORKERS} ({relation} contexts)")


@pytest.mark.requirement("MEM-11")
def test_processes_do_not_mix(npu: Npu, chain: LoadedModel, effort: Effort) -> None:
    """Two processes run at once, each with its own context and inputs."""
    program = Program()
    rounds = effort.rounds(100)
    names = [f"process {number}" for number in range(2)]
    with program.threads() as threads:
        for name in names:
            with threads.group(), program.child(name):
                io = ZeroCopy(f"context of {name}", chain)
                io.open(program)
                _work(npu, program, io, rounds)
    values = npu.execute(program)
    for name in names:
        saved = require_survived(npu, values[name], f"{name} of {len(names)}")
        npu.require_same(saved[f"context of {name}"], f"{name} of {len(names)}")
    npu.record_bound(rounds * len(names))


@pytest.mark.requirement("MEM-11")
@pytest.mark.needs("several_cores")
def test_cores_do_not_mix(npu: Npu, chain: LoadedModel, effort: Effort) -> None:
    """One thread and context per NPU core, each pinned to its core."""
    npu.require_function("rknn_set_core_mask")
    masks = [rknn_core_mask[f"RKNN_NPU_CORE_{core}"] for core in range(npu.soc.npu_cores)]
    contexts = [ZeroCopy(mask.name, chain) for mask in masks]
    program = Program()
    for io, mask in zip(contexts, masks, strict=True):
        io.open(program)
        program.set_core_mask(io.context, mask)
    _side_by_side(npu, program, contexts, effort.rounds(60), "beside the other cores")


@pytest.mark.requirement("MEM-11")
@pytest.mark.needs("several_cores")
def test_every_core_mask_gives_the_same_bytes(npu: Npu, chain: LoadedModel, wide: LoadedModel) -> None:
    """Each legal mask, set on one context after another, equals the reference."""
    npu.require_function("rknn_set_core_mask")
    for model in (chain, wide):
        data = npu.random_inputs(model, 1)[0]
        expected = npu.reference(model, [data])[0]
        program = Program()
        io = ZeroCopy("a", model)
        io.open(program)
        for mask in npu.core_masks:
            program.set_core_mask(io.context, rknn_core_mask[mask])
            if npu.can_sync:
                program.fill(io.output, BACKGROUND)
                program.sync(io.output, TO_DEVICE, io.context)
            program.write(io.input, data)
            program.run(io.context)
            io.compare_output(program, [expected], mask)
        io.close(program)
        values = npu.execute(program)
        for mask in npu.core_masks:
            npu.require_same(values[mask], f"{model.name} with {mask}")


def _side_by_side(npu: Npu, program: Program, contexts: list[ZeroCopy], rounds: int, where: str) -> None:
    """Each of ``contexts``, which ``program`` has opened, in a thread of its own; all are right."""
    with program.threads() as threads:
        for io in contexts:
            with threads.group():
                _work(npu, program, io, rounds)
    values = npu.execute(program)
    for io in contexts:
        npu.require_same(values[io.context], f"{io.context} {where}")
    npu.record_bound(rounds * len(contexts))


def _work(npu: Npu, program: Program, io: ZeroCopy, rounds: int) -> None:
    """One worker's loop over two inputs of its own."""
    inputs = npu.random_inputs(io.model, 2)
    expected = npu.reference(io.model, inputs)
    with program.repeat(rounds):
        program.write_cycle(io.input, inputs)
        program.run(io.context)
        io.compare_output(program, expected, io.context)
