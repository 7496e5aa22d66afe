"""Boards that answer otherwise than the emulator does by default, and older runtimes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from pytest_rknpu.agent.abi import RKNN_FLAG_MEM_ALLOC_OUTSIDE
from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import (
    CACHEABLE,
    NON_CACHEABLE,
    BoardSession,
    Npu,
    Program,
    ZeroCopy,
    measure_sensitivity,
    open_session,
)
from pytest_rknpu.session.layout import row_pixels
from pytest_rknpu.session.references import by_the_copying_api
from pytest_rknpu.session.zero_copy import require_feeds_itself
from pytest_rknpu.verdict import ItemRecord


@contextmanager
def npu_of(**keys: object) -> Iterator[Npu]:
    board = Board.model_validate({"name": "desk", "soc": "rk3588", "runtime": "emulator", "seed": 1} | keys)
    with open_session(board, seed=1) as session:
        assert isinstance(session, BoardSession)
        yield Npu(session, ItemRecord("test", (), 7), 7)


def test_sizes_are_asked_in_both_ways_that_documents_know() -> None:
    with npu_of() as plain, npu_of(faults=["sound-sizes-need-flag"]) as flagged:
        sizes = [npu.session.memory_sizes(npu.model("probe_chain").sha256) for npu in (plain, flagged)]
        described = [npu.model("probe_chain").description for npu in (plain, flagged)]
    assert [size.from_outside for size in sizes] == [False, True]
    assert sizes[0].internal == sizes[1].internal == described[1].internal_size > 0
    assert sizes[0].weight == sizes[1].weight == described[1].weight_size > 0


def test_sensitivity_is_that_of_the_kind_of_memory(npu: Npu) -> None:
    model = npu.model("probe_pointwise")
    assert measure_sensitivity(npu, model, CACHEABLE).to_device > 0
    coherent = measure_sensitivity(npu, model, NON_CACHEABLE)
    assert (coherent.to_device, coherent.from_device) == (0, 0)


def test_an_error_line_in_a_child_process_is_the_tests(npu: Npu) -> None:
    with npu_of(faults=["error-line-with-success"]) as noisy:
        for board, lines in ((npu, 0), (noisy, 3)):
            io = ZeroCopy("a", board.model("probe_pointwise"))
            board.finish()
            program = Program()
            with program.repeat(3), program.child("child"):
                io.open(program)
                program.run(io.context)
            assert all(child["outcome"] == "done" for child in board.execute(program)["child"])
            assert len(board.finish().error_lines) == lines


def test_padded_rows_are_no_matter_for_the_reference() -> None:
    """Whether rknn_inputs_set takes native rows with their padding is open: the reference does without."""
    with npu_of(faults=["copying-ignores-stride"]) as npu:
        model = npu.model("probe_stride")
        tensor = model.description.inputs[0]
        assert row_pixels(tensor.native, tensor.shape[3]) > tensor.shape[3]
        data = npu.random_inputs(model, 1)
        requests: list[str] = []
        original = npu.session.request
        npu.session.request = lambda message, *rest: (  # type: ignore[method-assign]
            requests.append(repr(message)),
            original(message, *rest),
        )[1]
        reference = npu.reference(model, data)
        assert not any("set_inputs" in request for request in requests)
        by_the_copying_api(npu, model, data)
        assert any("set_inputs" in request for request in requests)
    assert len(reference) == 1


def test_older_runtimes_know_fewer_core_masks() -> None:
    with npu_of(runtime_version="1.6.0") as old, npu_of() as new:
        assert set(new.core_masks) - set(old.core_masks) == {"RKNN_NPU_CORE_ALL"}
        assert new.core_masks == new.soc.core_masks


def test_a_model_whose_output_is_no_input_is_told(npu: Npu) -> None:
    require_feeds_itself(npu.model("probe_pointwise"))
    with pytest.raises(Inconclusive, match="probe_wide: output and input differ in fmt, dims"):
        require_feeds_itself(npu.model("probe_wide"))


def test_a_digest_is_that_of_the_bytes(npu: Npu) -> None:
    import hashlib

    model = npu.model("probe_pointwise")
    data = np.arange(256, dtype=np.uint8).tobytes()
    program = Program()
    program.init("a", model.sha256, flags=RKNN_FLAG_MEM_ALLOC_OUTSIDE)
    program.create_mem("m", "a", 512)
    program.write("m", data, offset=64)
    program.digest("m", "sha256", offset=64, length=256)
    assert npu.execute(program)["sha256"] == hashlib.sha256(data).hexdigest()
