"""Holders that are killed: their places come free, and only theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labgrid_farm import Farm, takes_long
from plugin.project import wait_until

from pytest_rknpu.errors import LeaseTimeout
from pytest_rknpu.inventory.schema import Board, load_boards
from pytest_rknpu.transport.labgrid import hold_place

HOLD = """
import os, sys, time
from pytest_rknpu.inventory.schema import load_boards
from pytest_rknpu.transport.labgrid import hold_place
boards = load_boards("boards.toml").boards
with hold_place(boards, run="run-1", wait_s=20, tell=print) as place:
    if "fork" in sys.argv and os.fork() == 0:
        time.sleep(600)
    print("held", place._keeper._process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def board(farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A place of the farm, described in the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("boards.toml").write_text(farm.board("desk", 'place = "shelf-1"'))
    return load_boards("boards.toml").boards[0]


@contextmanager
def holder(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that holds the place, and its keeper."""
    command = [sys.executable, "-c", HOLD, *words]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().split()[1])
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)


@pytest.mark.parametrize("words", [(), ("fork",)], ids=["alone", "with-a-fork-that-lives-on"])
def test_a_killed_holder_frees_its_place_at_once(farm: Farm, board: Board, words: tuple[str, ...]) -> None:
    with holder(*words) as (process, _):
        assert list(farm.holders()) == ["shelf-1"]
        process.kill()
        wait_until(lambda: farm.holders() == {}, "the keeper gives the place back")
        # Only then it takes its sign of life away.
        wait_until(lambda: farm.ask("reservations") == {}, "nothing of it is left")


def test_a_keeper_that_is_told_to_end_gives_the_place_back(farm: Farm, board: Board) -> None:
    with holder() as (_, keeper):
        os.kill(keeper, signal.SIGTERM)
        wait_until(lambda: farm.holders() == {}, "the keeper gives the place back")


@takes_long
def test_a_place_whose_keeper_was_killed_too_goes_to_whoever_waits(farm: Farm, board: Board) -> None:
    """The coordinator drops the sign of life a minute after the kill; here that is done by hand."""
    with holder() as (process, keeper):
        process.kill()
        os.kill(keeper, signal.SIGKILL)
    (dead,) = farm.holders().values()
    with (
        pytest.raises(LeaseTimeout, match="held by"),
        hold_place([board], run="r", wait_s=6.5, tell=lambda _: None),
    ):
        pytest.fail("it may be alive: its sign is there")
    (sign,) = (token for token, owner in farm.ask("reservations").items() if owner == dead)
    farm.ask("cancel", sign)
    with hold_place([board], run="r", wait_s=30.0, tell=lambda _: None) as place:
        assert farm.holders()["shelf-1"] != dead
        place.check()


def test_a_place_that_the_own_run_holds_is_waited_for_without_limit(farm: Farm, board: Board) -> None:
    said: list[str] = []
    with holder() as (process, _):

        def end() -> None:
            wait_until(lambda: bool(said), "somebody waits")
            threading.Event().wait(1.5)
            process.kill()

        ender = threading.Thread(target=end)
        ender.start()
        with hold_place([board], run="run-1", wait_s=0.2, tell=said.append):
            ender.join()


@takes_long
def test_people_are_left_alone_however_long_they_hold_a_place(farm: Farm, board: Board) -> None:
    farm.ask("acquire", "shelf-1")
    with pytest.raises(LeaseTimeout), hold_place([board], run="r", wait_s=6.5, tell=lambda _: None):
        pytest.fail("it is somebody's")
    assert farm.holders() == {"shelf-1": "elsewhere/somebody"}
    farm.ask("release", "shelf-1")
