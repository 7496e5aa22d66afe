"""Clocks pinned by a session are put back, also when pytest itself is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from latency.conftest import OpenNpu

from pytest_rknpu.errors import BoardError
from pytest_rknpu.measure.conditions import not_fixed
from pytest_rknpu.session.latency import Latency, pinned_clocks

PATIENCE_S = 30.0
GOVERNOR = "sys/class/devfreq/fdab0000.npu/governor"


def until(condition: Callable[[], bool]) -> None:
    """Wait for other processes."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, "it did not happen in time"
        os.sched_yield()


def governor(reading: Any) -> str:
    return str(reading["npu_clock"]["value"]["governor"])


def test_clocks_are_pinned_for_the_block_only(npu_of: OpenNpu) -> None:
    npu = npu_of(latency_model="wandering", pin=True)
    session = npu.session
    assert governor(session.conditions()) == "rknpu_ondemand"
    assert not_fixed(session.conditions()) == ["npu: governor rknpu_ondemand"]
    with pinned_clocks(npu) as told:
        assert {clock["clock"]: clock["hertz"] for clock in told} == {
            "npu": 1_000_000_000,
            "ddr": 1_056_000_000,
            "cpu policy0": 1_608_000_000,
        }
        reading = session.conditions()
        assert not_fixed(reading) == []
        assert Latency(npu, (), told).disturbances([reading, reading]) == []
    assert governor(session.conditions()) == "rknpu_ondemand"
    assert npu.record.notes == []


def test_a_board_that_is_not_to_be_pinned_is_left_alone(npu_of: OpenNpu) -> None:
    npu = npu_of(latency_model="wandering")
    with pinned_clocks(npu) as told:
        assert told == ()
        reading = npu.session.conditions()
        assert governor(reading) == "rknpu_ondemand"
        disturbed = Latency(npu, (), told).disturbances([reading, reading])
        assert disturbed == ["clock not fixed: npu: governor rknpu_ondemand"]


def test_what_cannot_be_pinned_is_named_and_judged_only_if_allowed(npu_of: OpenNpu) -> None:
    """What moves the DDR clock of RV1106B is not known; its NPU's nothing moves."""
    for allowed in (False, True):
        npu = npu_of(name=f"mini-{allowed}".lower(), soc="rv1106b", pin=True, allow_unpinned=allowed)
        with pinned_clocks(npu) as told:
            reading = npu.session.conditions()
            latency = Latency(npu, (), told)
            disturbed = latency.disturbances([reading, reading])
            latency.note_conditions([reading])
        assert len(disturbed) == (0 if allowed else 1)
        assert all("clock ddr is not pinned: there is no " in sentence for sentence in disturbed)
        assert sum("cannot be pinned" in note for note in npu.record.notes) == 2
        assert any("although a clock may move" in note for note in npu.record.notes) == allowed


@pytest.mark.parametrize("pin", [True, False])
def test_clocks_that_nothing_moves_are_named_and_judged(npu_of: OpenNpu, pin: bool) -> None:
    """RV1106 has a node for neither clock: no budget could ever pass or fail there."""
    npu = npu_of(name=f"mini-{pin}".lower(), soc="rv1106", pin=pin)
    with pinned_clocks(npu) as told:
        reading = npu.session.conditions()
        latency = Latency(npu, (), told)
        disturbed = latency.disturbances([reading, reading])
        latency.note_conditions([reading])
    assert not [sentence for sentence in disturbed if "npu" in sentence or "ddr" in sentence]
    for clock in ("npu", "ddr"):
        assert any(f"clock {clock}: nothing moves it on rv1106" in note for note in npu.record.notes)


def test_pinning_twice_is_an_error_of_the_board(npu_of: OpenNpu) -> None:
    npu = npu_of(pin=True)
    with (
        pinned_clocks(npu),
        pytest.raises(BoardError, match="clocks not pinned: the clocks are pinned already"),
        pinned_clocks(npu),
    ):
        pass


SCRIPT = """
import sys
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session import Npu, open_session
from pytest_rknpu.session.latency import pinned_clocks
from pytest_rknpu.verdict import ItemRecord
board = Board(name="desk", soc="rk3588", runtime="emulator", latency_model="wandering", pin=True)
with open_session(board, seed=1) as session, pinned_clocks(Npu(session, ItemRecord("t", (), 1), 1)):
    print(session.agent["pid"], flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("victim", ["pytest", "agent"])
def test_a_kill_leaves_nothing_pinned(tmp_path: Path, victim: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        agent = int(process.stdout.readline())
        (file,) = tmp_path.glob(f"*/root/{GOVERNOR}")
        assert file.read_text() == "userspace"
        os.kill(process.pid if victim == "pytest" else agent, signal.SIGKILL)
        until(lambda: file.read_text().strip() == "rknpu_ondemand")
    finally:
        process.kill()
        process.communicate()
