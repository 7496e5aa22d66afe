"""Whether a board that is back is the one that it was, and well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.errors import BoardChanged, BoardUnfit, ConformanceFailure, ModelError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import (
    BoardSession,
    Fitness,
    Npu,
    Program,
    fitness_of,
    found_afterwards,
    health,
    open_session,
    require_fit,
    restarted,
)
from pytest_rknpu.session.simulator import SimulatorSession
from pytest_rknpu.verdict import ItemRecord

Open = Callable[..., BoardSession]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """``opened(**keys)``: a session with an emulated board."""
    monkeypatch.setattr(health, "_LOOK_SECONDS", 0.0)
    with ExitStack() as stack:

        def open_it(**keys: Any) -> BoardSession:
            board = Board(**{"name": "desk", "soc": "rk3588", "runtime": "emulator", **keys})
            session = stack.enter_context(open_session(board, seed=1))
            assert isinstance(session, BoardSession)
            return session

        yield open_it


def measured(session: BoardSession) -> Fitness:
    found = fitness_of(session)
    assert found is not None
    return found


@pytest.mark.parametrize("soc", ["rk3588", "rk3566", "rv1106"])
def test_a_board_that_is_as_before_is_fit(opened: Open, soc: str) -> None:
    before = measured(opened(soc=soc))
    assert before.output
    assert require_fit(opened(soc=soc), before) == []
    assert require_fit(opened(soc=soc), None) == []  # compared with this host then


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"driver_version": "0.9.6"}, "driver was 'emulated 0.9.8', is 'emulated 0.9.6'"),
        ({"runtime_version": "2.2.0"}, "runtime was 'emulated 2.3.2.*is 'emulated 2.2.0"),
    ],
)
def test_other_versions_are_another_board(opened: Open, keys: dict[str, str], words: str) -> None:
    before = measured(opened())
    with pytest.raises(BoardChanged, match=f"board desk came back as another one: .*{words}"):
        require_fit(opened(**keys), before)


def test_a_version_that_can_no_longer_be_read_is_a_remark(opened: Open) -> None:
    """The start of the kernel's log gets lost in time, and with it what the driver said."""
    session = opened()
    before = measured(session)
    session.versions["driver"] = "absent (the kernel log does not say any more)"
    assert require_fit(session, before) == [
        "driver can no longer be read (absent (the kernel log does not say any more))"
    ]


def test_other_bytes_of_a_small_inference_are_no_good(opened: Open) -> None:
    session = opened()
    before = measured(session)
    assert before.output is not None
    wrong = replace(before, output=bytes([before.output[0] ^ 1]) + before.output[1:])
    with pytest.raises(BoardUnfit, match="desk: a small inference gives other bytes than before it was lost"):
        require_fit(session, wrong)


def test_a_board_that_was_never_well_is_compared_with_this_host(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_STEPS", -1)  # so that nothing is within them
    with pytest.raises(BoardUnfit, match="desk: a small inference is more than -1 steps off"):
        require_fit(opened(), None)


def test_an_inference_that_fails_and_did_not_before(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened()
    before = measured(session)

    def refuse(*_: object) -> None:
        raise ModelError("the runtime refuses it\nand more")

    monkeypatch.setattr(health, "_infer", refuse)
    with pytest.raises(
        BoardUnfit, match="desk: a small inference fails, and did not before: the runtime refuses"
    ):
        require_fit(session, before)
    never = measured(session)
    assert (never.output, never.why_not) == (None, "the runtime refuses it")
    assert require_fit(session, never) == [
        "no inference was tried: it was not possible before either (the runtime refuses it)"
    ]


def test_a_busy_npu_is_waited_for_and_then_no_good(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened()
    before = measured(session)
    session.facts = {**session.facts, "npu_load": {"value": [0, 80, 0]}}
    assert require_fit(session, before) == []  # a second look finds it idle
    monkeypatch.setattr(session, "probe", lambda: session.facts)
    with pytest.raises(BoardUnfit, match=r"desk: its NPU is busy \(\(0, 80, 0\) percent\)"):
        require_fit(session, before)
    assert require_fit(session, replace(before, load=(0, 70, 0))) == []  # as it was
    session.facts = {**session.facts, "npu_load": {"blocked": "not allowed"}}
    assert require_fit(session, before) == ["whether the NPU is idle cannot be read"]


def test_boards_without_an_agent_are_not_looked_at() -> None:
    session = SimulatorSession(Board(name="sim", soc="rk3588", runtime="simulator"), "2.3.2")
    assert fitness_of(session) is None
    assert require_fit(session, None) == []


def test_the_agent_tells_which_start_of_the_kernel_it_is(opened: Open, tmp_path: Path) -> None:
    session = opened()
    file = tmp_path / "proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True)
    library = {"kind": "python", "entry": "pytest_rknpu.emulator:open_library", "options": {"soc": "rk3588"}}
    start = {"request": "start", "library": {**library, "context_bits": 64}, "root": str(tmp_path)}
    for boot in ("first", "second"):
        file.write_text(boot + "\n")
        assert session.request(start)["boot_id"] == boot


def test_a_restart_is_told_with_what_the_kernel_said_since(opened: Open) -> None:
    lost, back = opened(), opened()
    assert restarted(lost, back) is None  # an emulated board has no kernel
    lost.boot_id, back.boot_id = "one", "one"
    assert restarted(lost, back) is False
    assert "rebooted" not in found_afterwards(lost, back)
    back.boot_id = "two"
    assert restarted(lost, back) is True
    assert found_afterwards(lost, back).splitlines()[1:] == [
        "afterwards: the board rebooted in between",
        "kernel log:",
        "  rknpu: emulated driver started",
    ]


def test_new_words_of_the_kernel_are_told(opened: Open) -> None:
    lost, back = opened(), opened()
    lost.boot_id = back.boot_id = "one"
    known = lost.facts["npu_kernel_log"]["value"]
    said = {"sequence": None, "seconds": None, "level": 3, "text": "RKNPU: job timeout, flags: 0x0"}
    back.facts = {**back.facts, "npu_kernel_log": {"value": [*known, said]}}
    assert found_afterwards(lost, back) == "\nkernel log:\n  RKNPU: job timeout, flags: 0x0"


def test_an_inference_that_fails_leaves_nothing_in_the_way(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its context would be one of those of the first test (seen with a driver that loses the model)."""
    session = opened()
    model = Npu(session, ItemRecord("test", (), 1), 1).model("probe_chain")
    program = Program()
    program.init("reference", model.sha256)

    def failing(npu: Npu, *_: object) -> list[bytes]:
        npu.execute(program)
        raise ConformanceFailure("rknn_run failed")

    with monkeypatch.context() as patched:
        patched.setattr(Npu, "reference", failing)
        assert measured(session).why_not == "rknn_run failed"
    session.execute(program)
