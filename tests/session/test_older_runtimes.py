"""SYNC-04 on runtimes that ignore the DISABLE_FLUSH flags: what shows that rknn_run's syncs are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import (
    BoardSession,
    Npu,
    ZeroCopy,
    measure_incoherence,
    open_session,
    require_run_matters,
)
from pytest_rknpu.session.hand_over import hand_overs, require_followed
from pytest_rknpu.verdict import ItemRecord


@contextmanager
def npu_of(**keys: object) -> Iterator[Npu]:
    """The NPU of an emulated rk3588 with further keys of boards.toml."""
    board = Board(name="old", soc="rk3588", runtime="emulator", seed=1, **keys)  # type: ignore[arg-type]
    with open_session(board, seed=1) as session:
        assert isinstance(session, BoardSession)
        yield Npu(session, ItemRecord("test", (), 7), 7)


@pytest.mark.parametrize(("runtime", "can_sync"), [("1.5.2", False), ("1.6.0", True)])
def test_memory_that_no_run_maintains_is_stale(runtime: str, can_sync: bool) -> None:
    with npu_of(runtime_version=runtime) as npu:
        assert not npu.knows_flush_flags
        assert npu.can_sync is can_sync
        assert measure_incoherence(npu) > 0
        require_run_matters(npu)
        assert any("nobody maintains" in entry.name for entry in npu.record.measurements)


def test_a_run_that_does_not_maintain_its_memory_is_seen() -> None:
    with npu_of(runtime_version="1.5.2", faults=("run-flush-missing",)) as npu:
        model = npu.model("probe_pointwise")
        compared = hand_overs(
            npu, ZeroCopy("a", model), npu.random_inputs(model, 4), 8, to_npu=None, to_cpu=None
        )
        assert compared["mismatches"]


def test_one_output_for_every_input_is_a_failure_and_no_reference(npu: Npu) -> None:
    require_followed(npu, [b"a", b"b"], [b"x", b"y"])
    require_followed(npu, [b"a", b"a"], [b"x", b"x"])
    with pytest.raises(ConformanceFailure, match="2 different inputs give one output"):
        require_followed(npu, [b"a", b"b"], [b"x", b"x"])
