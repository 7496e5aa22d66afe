"""``power`` in boards.toml: what is taken, and how what is wrong is told without repeating it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.power_table import PowerTable
from pytest_rknpu.inventory.schema import Board, load_boards

BOARD = '[[board]]\nname = "desk"\nsoc = "rk3588"\n'


def loaded(tmp_path: Path, keys: str, board: str = BOARD + 'host = "192.0.2.7"\n') -> Board:
    file = tmp_path / "boards.toml"
    file.write_text(board + keys)
    return load_boards(file).boards[0]


def test_a_command(tmp_path: Path) -> None:
    board = loaded(tmp_path, 'power = { cycle = ["/usr/bin/uhubctl", "-a", "cycle"], wait_s = 30 }')
    assert isinstance(board.power, PowerTable)
    assert board.power.cycle == ("/usr/bin/uhubctl", "-a", "cycle")
    assert (board.power.wait_s, board.power.limit_s, board.power.program) == (30.0, 60.0, "uhubctl")


def test_labgrids_own(tmp_path: Path) -> None:
    assert loaded(tmp_path, 'power = "labgrid"', BOARD + 'place = "desk-place"\n').power == "labgrid"
    with pytest.raises(
        ConfigurationError, match=r'"desk".*key "power": "labgrid" needs transport = "labgrid"'
    ):
        loaded(tmp_path, 'power = "labgrid"')


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"uhubctl -p hunter2"', 'must be "labgrid" or a table such as'),
        ('["uhubctl", "hunter2"]', 'must be "labgrid" or a table such as'),
        ("true", 'must be "labgrid" or a table such as'),
        ('{ cycle = "uhubctl -p hunter2" }', 'key "cycle": must be a list of texts'),
        ('{ cycle = ["uhubctl", 7, "hunter2"] }', 'key "cycle": must be a list of texts'),
        ("{ cycle = [] }", 'key "cycle": must be a list of texts'),
        ('{ cycle = [""] }', 'key "cycle": must be a list of texts'),
        ("{ wait_s = 3 }", 'key "cycle": must be a list of texts'),
        ('{ cycle = ["a", "hunter2\\u0000"] }', 'key "cycle": no argument of a program can hold a NUL'),
        ('{ cycle = ["a", "hunter2"], wait = 3 }', 'unknown key "wait" .did you mean "wait_s"'),
        ('{ cycle = ["a", "hunter2"], wait_s = 0 }', 'key "wait_s": must be a number of seconds, above 0'),
        ('{ cycle = ["a", "hunter2"], limit_s = true }', 'key "limit_s": must be a number of seconds'),
        ('{ cycle = ["a", "hunter2"], limit_s = nan }', 'key "limit_s": must be a number of seconds'),
    ],
)
def test_what_is_wrong_is_named_and_not_repeated(tmp_path: Path, value: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf'"desk".*key "power": {words}') as caught:
        loaded(tmp_path, f"power = {value}")
    assert "hunter2" not in str(caught.value)


def test_a_simulator_has_no_power(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='key "power": only for runtime = '):
        loaded(tmp_path, 'power = { cycle = ["a"] }', BOARD + 'runtime = "simulator"\n')


def test_a_board_does_not_show_the_command(tmp_path: Path) -> None:
    board = loaded(tmp_path, 'power = { cycle = ["uhubctl", "hunter2"] }')
    assert "hunter2" not in repr(board) + str(board)
