"""ERR-06: what outlives its owner gives an error code or goes on working, each in a process of its own."""

from __future__ import annotations

import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.session import (
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    ZeroCopy,
    code_name,
    require_survived,
)
from pytest_rknpu.session.zero_copy import bound_attr


@pytest.mark.requirement("ERR-06")
@pytest.mark.expects_runtime_errors
def test_exported_memory_outlives_its_context(npu: Npu, model: LoadedModel) -> None:
    """A's memory is bound to B by its descriptor, A is destroyed: B is still right, or gives an error."""
    data = npu.random_inputs(model, 1)[0]
    owner, user = ZeroCopy("owner", model), ZeroCopy("user", model)
    program = Program()
    with program.child("child"):
        program.init(owner.context, model.sha256)
        program.create_mem("exported", owner.context, owner.input_size)
        user.open(program)
        program.import_fd("imported", user.context, "exported", user.input_size)
        program.bind(user.context, "imported", bound_attr(model.description.inputs[0].native, "input"))
        program.destroy(owner.context)
        program.write("imported", data)
        if "rknn_mem_sync" in npu.session.functions:  # rknn_run may leave imports to the application
            program.sync("imported", TO_DEVICE, user.context)
        program.run(user.context, expect="any", save="ran")
        user.compare_output(program, [npu.reference(model, [data])[0]], "output")
    what = "a run on memory whose context was destroyed"
    _right_or_refused(npu, require_survived(npu, npu.execute(program)["child"], what), what)


@pytest.mark.requirement("ERR-06")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("tensor", ["input", "output", "internal"])
def test_run_after_a_bound_memory_is_destroyed(npu: Npu, model: LoadedModel, tensor: str) -> None:
    """rknn_destroy_mem of a memory that is bound, then rknn_run: an error code, or a result as before."""
    data = npu.random_inputs(model, 1)[0]
    expected = npu.reference(model, [data])[0]
    io = ZeroCopy("a", model, flags=RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE)
    bound = {"input": io.input, "output": io.output, "internal": "internal"}
    program = Program()
    with program.child("child"):
        program.init(io.context, model.sha256, flags=io.flags)
        program.create_mem("internal", io.context, model.description.internal_size)
        # Before inputs and outputs, as all samples do: librknnrt 1.5.2 forgets what was bound before it.
        program.bind_internal(io.context, "internal")
        io.bind(program)
        program.write(io.input, data)
        program.run(io.context)
        program.destroy_mem(bound[tensor], io.context)
        program.run(io.context, expect="any", save="ran")
        if tensor != "output":
            io.compare_output(program, [expected], "output")
    what = f"a run after the bound {tensor} memory was destroyed"
    _right_or_refused(npu, require_survived(npu, npu.execute(program)["child"], what), what)


def _right_or_refused(npu: Npu, values: dict[str, object], what: str) -> None:
    npu.record.measure("code of rknn_run", code_name(int(str(values["ran"]))))
    if values["ran"] == 0:
        compared = values.get("output")
        if not isinstance(compared, dict):
            raise ConformanceFailure(
                f"board {npu.session.board.name}: {what} returned RKNN_SUCC: it wrote to memory that is not "
                "its own"
            )
        npu.require_same(compared, f"{what} returned RKNN_SUCC")
        npu.record.note(f"{what} is accepted, and the result is right")
    npu.require_health()
