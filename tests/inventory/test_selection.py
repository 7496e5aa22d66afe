"""Which boards a run is about: pure decisions."""

from __future__ import annotations

import itertools

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.selection import select

BOARDS = [
    Board(name="emu-rk3588", soc="rk3588", runtime="emulator"),
    Board(name="emu-rk3576", soc="rk3576", runtime="emulator"),
    Board(name="sim-rk3588", soc="rk3588", runtime="simulator"),
]


def names(boards: list[Board]) -> list[str]:
    return [board.name for board in boards]


def test_nothing_asked_is_everything() -> None:
    assert select(BOARDS) == BOARDS


@pytest.mark.parametrize(
    ("globs", "socs", "expected"),
    [
        (["emu-*"], [], ["emu-rk3588", "emu-rk3576"]),
        (["EMU-RK3588"], [], ["emu-rk3588"]),
        (["sim-*", "*-rk3576"], [], ["emu-rk3576", "sim-rk3588"]),
        ([], ["rk3588"], ["emu-rk3588", "sim-rk3588"]),
        ([], ["RK3588S"], ["emu-rk3588", "sim-rk3588"]),
        ([], ["rk3576", "rk3588"], ["emu-rk3588", "emu-rk3576", "sim-rk3588"]),
        (["emu-*"], ["rk3588"], ["emu-rk3588"]),
        (["*-rk35[78]?"], ["rk3576"], ["emu-rk3576"]),
    ],
)
def test_globs_and_socs(globs: list[str], socs: list[str], expected: list[str]) -> None:
    assert names(select(BOARDS, globs, socs)) == expected


def test_order_is_that_of_the_file_whatever_was_asked() -> None:
    for boards in itertools.permutations(BOARDS):
        for globs in itertools.permutations(["emu-*", "sim-rk3588"]):
            assert select(boards, globs) == list(boards)


@pytest.mark.parametrize(
    ("globs", "socs", "words"),
    [
        (["emu-rk358"], [], ["--board 'emu-rk358'", 'did you mean "emu-rk3588"', "sim-rk3588 (rk3588)"]),
        (["emu-*", "farm-*"], [], ["--board 'farm-*'"]),
        (["sim-*"], ["rk3576"], ["--board 'sim-*'", "--soc 'rk3576'", "emu-rk3576 (rk3576)"]),
        ([], ["rk3566"], ["--soc 'rk3566'", "there are: emu-rk3588"]),
        ([], ["rk3599"], ["unknown SoC"]),
    ],
)
def test_errors_say_what_there_is(globs: list[str], socs: list[str], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        select(BOARDS, globs, socs)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_no_boards_at_all() -> None:
    with pytest.raises(ConfigurationError, match="no board is left"):
        select([])
