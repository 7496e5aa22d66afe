"""MEM-10: memory imported by its dma-buf descriptor, at an offset, behaves like memory of its own."""

from __future__ import annotations

import pytest

from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import FROM_DEVICE, TO_DEVICE, LoadedModel, Npu, Program
from pytest_rknpu.session.zero_copy import bound_attr

PAGE = 4096


@pytest.mark.requirement("MEM-10")
@pytest.mark.parametrize("offset", [0, PAGE, 3 * PAGE], ids=lambda value: f"offset{value}")
def test_imported_memory_equals_own_memory(npu: Npu, chain: LoadedModel, effort: Effort, offset: int) -> None:
    """Input and output are parts of one allocation; the application syncs the parts (F), if it can."""
    description, context = chain.description, "a"
    sizes = {"input": description.inputs[0].native_size, "output": description.outputs[0].native_size}
    patterns = npu.random_inputs(chain, 4)
    program = Program()
    program.init(context, chain.sha256, flags=npu.application_syncs)
    for name, native in (
        ("input", description.inputs[0].native),
        ("output", description.outputs[0].native),
    ):
        program.create_mem(f"{name} whole", context, offset + sizes[name])
        program.import_fd(name, context, f"{name} whole", sizes[name], offset=offset)
        program.bind(context, name, bound_attr(native, name))
    rounds = effort.rounds(50)
    with program.repeat(rounds):
        program.write_cycle("input", patterns)
        if npu.can_sync:
            program.sync("input", TO_DEVICE, context)
        program.run(context)
        if npu.can_sync:
            program.sync("output", FROM_DEVICE, context)
        program.compare_cycle("output", npu.reference(chain, patterns), "result")
    npu.require_same(npu.execute(program)["result"], f"memory imported at offset {offset}")
    npu.record_bound(rounds)
