"""SYNC-11: memory imported by its dma-buf descriptor is synced too, or the call says that it is not."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import (
    BIDIRECTIONAL,
    FROM_DEVICE,
    TO_DEVICE,
    LoadedModel,
    Npu,
    Program,
    code_name,
    require_sensitive,
)
from pytest_rknpu.session.sensitivity import stale_lines
from pytest_rknpu.session.zero_copy import bound_attr

CONTEXT = "a"


def _import_all(program: Program, npu: Npu, model: LoadedModel, *, bound: bool) -> None:
    """Record a context, an allocation for input and output, and an import of each; (F)."""
    description = model.description
    program.init(CONTEXT, model.sha256, flags=npu.application_syncs)
    for name, tensor in (("input", description.inputs[0]), ("output", description.outputs[0])):
        program.create_mem(f"{name} whole", CONTEXT, tensor.native_size)
        program.import_fd(name, CONTEXT, f"{name} whole", tensor.native_size)
        if bound:
            program.bind(CONTEXT, name, bound_attr(tensor.native, name))


def _bind_all(program: Program, model: LoadedModel) -> None:
    description = model.description
    for name, tensor in (("input", description.inputs[0]), ("output", description.outputs[0])):
        program.bind(CONTEXT, name, bound_attr(tensor.native, name))


def _close_all(program: Program) -> None:
    for name in ("input", "output", "input whole", "output whole"):
        program.destroy_mem(name, CONTEXT)
    program.destroy(CONTEXT)


@pytest.mark.requirement("SYNC-11")
@pytest.mark.expects_runtime_errors  # a refusal is an answer
def test_sync_of_imported_memory_after_binding(npu: Npu, model: LoadedModel, effort: Effort) -> None:
    """After rknn_set_io_mem, both directions: RKNN_SUCC and right data, or an error code."""
    npu.require_function("rknn_mem_sync")
    inputs = npu.random_inputs(model, 4)
    expected = npu.reference(model, inputs)
    rounds = effort.rounds(50)
    program = Program()
    _import_all(program, npu, model, bound=True)
    with program.repeat(rounds):
        program.write_cycle("input", inputs)
        program.sync("input", TO_DEVICE, CONTEXT, expect="any", save="to device")
        program.run(CONTEXT)
        program.sync("output", FROM_DEVICE, CONTEXT, expect="any", save="from device")
        program.compare_cycle("output", expected, "output")
    _close_all(program)
    values = npu.execute(program)
    if _refused(npu, {way: set(values[way]) for way in ("to device", "from device")}):
        return
    npu.require_same(
        values["output"], "rknn_mem_sync of imported memory returned RKNN_SUCC, and the data are wrong"
    )
    npu.record_bound(rounds)
    _require_sensitive(npu, model)


@pytest.mark.requirement("SYNC-11")
@pytest.mark.expects_runtime_errors
def test_sync_of_imported_memory_before_binding(npu: Npu, model: LoadedModel) -> None:
    """TO_DEVICE before rknn_set_io_mem and none after it: RKNN_SUCC and right data, or an error code."""
    npu.require_function("rknn_mem_sync")
    old, new = npu.random_inputs(model, 2)
    seen_old, seen_new = npu.reference(model, [old, new])
    program = Program()
    _import_all(program, npu, model, bound=False)
    program.write("input", old)
    program.sync("input", BIDIRECTIONAL, CONTEXT, expect="any", save="first")
    program.write("input", new)
    program.sync("input", TO_DEVICE, CONTEXT, expect="any", save="to device")
    _bind_all(program, model)
    program.run(CONTEXT)
    program.sync("output whole", FROM_DEVICE, CONTEXT)
    program.read("output", "output")
    _close_all(program)
    values = npu.execute(program)
    if _refused(npu, {way: {values[way]} for way in ("first", "to device")}):
        return
    stale = stale_lines(values["output"], seen_old, seen_new)
    npu.record.measure("stale lines after a sync before binding", stale, "lines")
    npu.require_equal(
        seen_new,
        values["output"],
        "rknn_mem_sync of memory that was imported and not yet bound returned RKNN_SUCC, and the NPU read "
        "other bytes",
    )
    _require_sensitive(npu, model)


def _refused(npu: Npu, codes: dict[str, set[int]]) -> bool:
    """Write the codes down; whether the board says by an error code that it does not sync such memory."""
    for way, found in codes.items():
        npu.record.measure(f"code of rknn_mem_sync, {way}", ", ".join(sorted(map(code_name, found))))
    refused = [way for way, found in codes.items() if found != {0}]
    for way in refused:
        if 0 in codes[way]:
            raise ConformanceFailure(
                f"board {npu.session.board.name}: rknn_mem_sync of the same imported memory, {way}, returned "
                f"both {' and '.join(sorted(map(code_name, codes[way])))}"
            )
    if refused:
        npu.record.note(f"rknn_mem_sync of imported memory is refused: {', '.join(refused)}")
    return bool(refused)


def _require_sensitive(npu: Npu, model: LoadedModel) -> None:
    """The control, in imported memory: without the syncs there are stale lines (SYNC-14)."""
    old, new = npu.random_inputs(model, 2)
    seen_old, seen_new = npu.reference(model, [old, new])
    program = Program()
    _import_all(program, npu, model, bound=True)
    for data in (old, new):
        program.write("input", data)
        if data is old:
            program.sync("input", TO_DEVICE, CONTEXT)
        program.run(CONTEXT)
        program.sync("output", FROM_DEVICE, CONTEXT)
    program.read("output", "without to_device")
    _close_all(program)
    stale = stale_lines(npu.execute(program)["without to_device"], seen_old, seen_new)
    npu.record.measure("control: stale lines without TO_DEVICE", stale, "lines")
    require_sensitive(stale, "TO_DEVICE")
