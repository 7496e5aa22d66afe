"""ERR-06: two processes on one buffer, which the second imports by its dma-buf descriptor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_rknpu.session import TO_DEVICE, LoadedModel, Npu, Program, ZeroCopy, require_survived
from pytest_rknpu.session.zero_copy import bound_attr

WHAT = "a run on another process's memory"


@pytest.mark.requirement("ERR-06")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("cleans_up", [True, False], ids=["destroys", "just-ends"])
def test_two_processes_on_one_memory(npu: Npu, model: LoadedModel, cleans_up: bool) -> None:
    """The second process is right or refused, and its end takes nothing from the first."""
    first, second = _inputs(npu, model)
    owner, user = ZeroCopy("owner", model), ZeroCopy("user", model)
    program = Program()
    owner.open(program)
    _run_on(npu, program, owner, owner.input, first)
    owner.compare_output(program, [first.result], "output")
    with program.child("child", inherits=[owner.input]):
        user.open(program)
        program.import_fd("imported", user.context, owner.input, owner.input_size)
        program.bind(user.context, "imported", bound_attr(model.description.inputs[0].native, "input"))
        program.compare("imported", first.data, "handed over")
        _run_on(npu, program, user, "imported", second)
        user.compare_output(program, [second.result], "output")
        if cleans_up:
            program.destroy_mem("imported", user.context)
            user.close(program)
    values = npu.execute(program)
    npu.require_same(values["output"], "a run before the second process came")
    refusal = _refusal(values["child"])
    if refusal is None:
        served = require_survived(npu, values["child"], WHAT)
        npu.require_same(served["handed over"], "what the second process finds in the first one's memory")
        npu.require_same(served["output"], WHAT)
    _first_goes_on(npu, owner, first, handed_back=second if refusal is None else None)
    npu.require_health()
    if refusal is not None:
        npu.record.note(f"{WHAT} is refused: {refusal['message']}")
        if refusal["kind"] == "mapping":
            pytest.skip(f"board {npu.session.board.name}: {refusal['message']}; there is nothing to import")


@dataclass(frozen=True)
class Input:
    """Native bytes of the model's input, and of the output that they give."""

    data: bytes
    result: bytes


def _inputs(npu: Npu, model: LoadedModel) -> tuple[Input, Input]:
    """The first process's and the second's."""
    data = npu.random_inputs(model, 2)
    first, second = (Input(*pair) for pair in zip(data, npu.reference(model, data), strict=True))
    if "rknn_mem_sync" in npu.session.functions:
        return first, second
    # The second process has no way to hand over what it wrote: librknnrt 1.5.2 asks the kernel to sync an
    # import as a dma-buf, which the rknpu driver does not support, and exports no rknn_mem_sync.
    npu.record.note("without rknn_mem_sync the second process only reads what the first one has handed over")
    return first, first


def _first_goes_on(npu: Npu, owner: ZeroCopy, first: Input, *, handed_back: Input | None) -> None:
    """The first process finds what the second wrote; runs on that and on new data are right."""
    program = Program()
    if handed_back is not None:
        program.compare(owner.input, handed_back.data, "input")
        _run_on(npu, program, owner, owner.input, None)
        owner.compare_output(program, [handed_back.result], "handed back")
    _run_on(npu, program, owner, owner.input, first)
    owner.compare_output(program, [first.result], "anew")
    owner.close(program)
    values = npu.execute(program)
    if handed_back is not None:
        npu.require_same(values["input"], "the first process's memory after the second ended")
        npu.require_same(values["handed back"], "a run on what the second process left")
    npu.require_same(values["anew"], "a run of the first process after the second ended")


def _run_on(npu: Npu, program: Program, io: ZeroCopy, memory: str, given: Input | None) -> None:
    """Record writing an input (None: what is there), handing it over, and rknn_run."""
    if given is not None:
        program.write(memory, given.data)
    # rknn_run may leave imports to the application, and knows nothing of another process's writes.
    if "rknn_mem_sync" in npu.session.functions:
        program.sync(memory, TO_DEVICE, io.context)
    program.run(io.context)


def _refusal(child: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error of a child that a call refused, or that could not map the memory. None: it was served, or
    did not survive.
    """
    if child["outcome"] != "error":
        return None
    error: Mapping[str, Any] = child["reply"]["error"]
    return error if error["kind"] in ("rknn", "null", "mapping") else None
