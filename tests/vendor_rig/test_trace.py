"""The trace of the driver's calls: what init, each direction of a sync, a run, and destroying come to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vendor_rig.conftest import MakeThinPath
from tests.vendor_rig.thin_path import SHAPES, random_inputs

TO_DEVICE, FROM_DEVICE, BOTH = 1, 2, 3
KERNEL_MAPPED, PLAIN = 0xB, 0x3
NON_CONTIGUOUS, CACHEABLE = 1, 2
SOCS = pytest.mark.parametrize("soc", ["rk3588", "rk3566"])
MODEL = "probe_chain"

Call = dict[str, Any]


@pytest.fixture
def calls(thin_path: MakeThinPath, soc: str) -> list[Call]:
    """Init, two memories, two runs and destroying, of a model with one input and one output."""
    path = thin_path(soc)
    seen = path.run(MODEL, random_inputs(SHAPES[soc, MODEL].input_bytes, 2))
    assert seen.exit_code == 0, seen.log
    return [{**call, "at": number} for number, call in enumerate(path.board.trace())]


def named(calls: list[Call], name: str) -> list[Call]:
    return [call for call in calls if call["call"] == name]


@SOCS
def test_the_library_asks_who_the_driver_is(calls: list[Call]) -> None:
    assert calls[0]["call"] == "VERSION"
    asked = [call["flags"] for call in named(calls, "ACTION")]
    hardware, driver, power_on, nice, iommu, power_off = 0, 1, 20, 19, 18, 21
    assert {hardware, driver, power_on, nice, iommu} <= set(asked)
    assert asked.index(power_on) < asked.index(power_off) == len(asked) - 1
    assert all(call["result"] == 0 for call in calls)


@SOCS
def test_init_makes_three_memories_and_hands_the_model_over(calls: list[Call]) -> None:
    """Tasks, which the kernel reads, weights with the register words, and internal memory."""
    created = named(calls, "MEM_CREATE")
    assert sorted(call["flags"] for call in created[:3]) == [PLAIN, PLAIN, KERNEL_MAPPED]
    assert [call["flags"] for call in created[3:]] == [PLAIN, PLAIN]  # rknn_create_mem, twice
    assert PLAIN == NON_CONTIGUOUS | CACHEABLE
    (tasks,) = (call["handle"] for call in created[:3] if call["flags"] == KERNEL_MAPPED)
    before_runs = calls[: named(calls, "SUBMIT")[0]["at"]]
    handed_over = {call["handle"] for call in named(before_runs, "MEM_SYNC") if call["flags"] == TO_DEVICE}
    weights = handed_over - {tasks} - {call["handle"] for call in created[3:]}
    assert tasks in handed_over
    assert len(weights) == 1


@SOCS
def test_each_memory_is_mapped_exported_and_handed_over_both_ways_at_first(calls: list[Call]) -> None:
    for call in named(calls, "MEM_CREATE"):
        about = [other for other in calls if other.get("handle") == call["handle"]]
        assert [other["call"] for other in about[:4]] == [
            "MEM_CREATE",
            "GEM_FLINK",
            "PRIME_HANDLE_TO_FD",
            "MEM_MAP",
        ]
        first = next(other for other in about if other["call"] == "MEM_SYNC")
        assert (first["flags"], first["offset"]) == (BOTH, 0)


@SOCS
def test_a_run_syncs_its_input_to_the_device_and_its_output_from_it(calls: list[Call], soc: str) -> None:
    source, result = (call["handle"] for call in named(calls, "MEM_CREATE")[3:])
    first, second = (call["at"] for call in named(calls, "SUBMIT"))
    end = named(calls, "MEM_DESTROY")[0]["at"]
    size = SHAPES[soc, MODEL].input_bytes
    between = named(calls[first + 1 : second], "MEM_SYNC")
    assert [(call["handle"], call["flags"]) for call in between][-1] == (source, TO_DEVICE)
    assert (between[-1]["offset"], between[-1]["size"]) == (0, size)
    after = named(calls[second + 1 : end], "MEM_SYNC")
    assert (result, 0) in {(call["handle"], call["offset"]) for call in after}
    assert {call["flags"] for call in after} == {FROM_DEVICE}
    assert not [call for call in between[:-1] if call["flags"] == TO_DEVICE], "nothing else is needed"


@SOCS
def test_a_job_is_blocking_ping_pong_by_the_program_counter(calls: list[Call]) -> None:
    program_counter, ping_pong = 1, 4
    for call in named(calls, "SUBMIT"):
        assert call["flags"] == program_counter | ping_pong
        assert call["core_mask"] == 0  # any
        assert call["timeout_ms"] > 0


@SOCS
def test_destroying_gives_every_memory_back(calls: list[Call]) -> None:
    created = sorted(call["handle"] for call in named(calls, "MEM_CREATE"))
    assert sorted(call["handle"] for call in named(calls, "MEM_DESTROY")) == created
    first, last = named(calls, "MEM_DESTROY")[0], named(calls, "ACTION")[-1]
    assert first["at"] < last["at"], "the application's memories go before the context does"
