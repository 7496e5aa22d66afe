"""Places that are held and given back, from within one process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labgrid_farm import Farm, takes_long
from loopback_sshd import free_port
from plugin.project import wait_until

from pytest_rknpu.errors import BoardError, BoardLost, LeaseLost, LeaseTimeout
from pytest_rknpu.inventory.schema import Board, load_boards
from pytest_rknpu.transport import open_gateway
from pytest_rknpu.transport.labgrid import HeldPlace, hold_place

#: As who this process holds a place.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")


@pytest.fixture
def board(farm: Farm, tmp_path: Path) -> Board:
    """The first place of the farm."""
    return boards(farm, tmp_path, 'place = "shelf-0"')[0]


def boards(farm: Farm, folder: Path, *where: str) -> list[Board]:
    file = folder / "boards.toml"
    file.write_text("".join(farm.board(f"desk{number}", each) for number, each in enumerate(where)))
    return list(load_boards(file).boards)


@contextmanager
def held(
    *wanted: Board, run: str = "run-1", wait_s: float = 20.0, said: list[str] | None = None
) -> Iterator[HeldPlace]:
    told = (said if said is not None else []).append
    with hold_place(wanted, run=run, wait_s=wait_s, tell=told) as place:
        yield place


def test_a_place_becomes_a_board_over_ssh(farm: Farm, board: Board) -> None:
    said: list[str] = []
    with held(board, said=said) as place:
        reached = place.board
        assert (place.name, reached.name, reached.transport) == ("shelf-0", "desk0", "ssh")
        assert (reached.host, reached.port) == ("127.0.0.1", farm.boards["shelf-0"].port)
        place.check()
        (holder,) = farm.holders().values()
        assert f".rknpu.{WORKER}.{os.getpid()}.run-1." in holder
        command, more = place.client("show")
        shown = subprocess.run(
            command, env={**os.environ, **more}, capture_output=True, text=True, check=True
        )
        assert f"acquired: {holder}" in shown.stdout
    assert said == []


def test_a_place_that_is_not_held_is_not_reached(board: Board) -> None:
    with pytest.raises(BoardLost, match=r"desk0: no connection: its place .* is not held"):
        open_gateway(board)


def test_who_waits_is_told_for_whom_and_gets_it_when_it_is_free(farm: Farm, board: Board) -> None:
    farm.ask("acquire", "shelf-0")
    said: list[str] = []

    def let_go() -> None:
        wait_until(lambda: bool(said), "somebody waits")
        farm.ask("release", "shelf-0")

    releaser = threading.Thread(target=let_go)
    releaser.start()
    with held(board, wait_s=60.0, said=said):
        releaser.join()
    assert len(said) == 1
    assert "place shelf-0 is held by elsewhere/somebody; waiting for up to 60 s" in said[0]


def test_waiting_has_a_limit_that_names_the_holder(farm: Farm, board: Board) -> None:
    farm.ask("acquire", "shelf-0")
    try:
        with (
            pytest.raises(LeaseTimeout, match=r"(?s)desk0 .*held by elsewhere/somebody.*--rknpu-wait"),
            held(board, wait_s=0.3),
        ):
            pytest.fail("two holders")
    finally:
        farm.ask("release", "shelf-0")


def test_one_user_does_not_share_a_place_with_himself(farm: Farm, board: Board) -> None:
    with (
        held(board, run="run-2"),
        pytest.raises(LeaseTimeout, match=rf"held by .*\.rknpu\.{WORKER}\..*\.run-2\."),
        held(board, wait_s=0.0),
    ):
        pytest.fail("two holders")


def test_of_several_places_the_free_one_is_taken(farm: Farm, tmp_path: Path) -> None:
    several = boards(farm, tmp_path, *(f'place = "shelf-{number}"' for number in range(3)))
    with held(several[0]), held(*several) as second, held(*several) as third:
        assert [second.board.name, third.board.name] == ["desk1", "desk2"]
        with pytest.raises(LeaseTimeout, match=r"(?s)shelf-0.*shelf-1.*shelf-2"), held(*several, wait_s=0.0):
            pytest.fail("four of three")


def test_a_filter_reserves_whatever_fits(farm: Farm, tmp_path: Path) -> None:
    any_board, second = boards(
        farm, tmp_path, 'filter = { soc = "rk3588" }', 'filter = { soc = "rk3588", shelf = "2" }'
    )
    with held(second) as two, held(any_board) as one, held(any_board) as other:
        names = [two.name, one.name, other.name]
        assert names[0] == "shelf-2"
        assert len(set(names)) == 3
        assert one.found
        with (
            pytest.raises(LeaseTimeout, match=r"place shelf-2 is held by .*\.rknpu\."),
            held(second, wait_s=0.0),
        ):
            pytest.fail("it is held")
    assert farm.ask("reservations") == {}


def test_what_the_farm_does_not_have_is_refused_at_once(farm: Farm, tmp_path: Path) -> None:
    absent, other = boards(farm, tmp_path, 'place = "attic"', 'filter = { soc = "rv1106" }')
    with pytest.raises(BoardError, match=r"has no place attic; there are: shelf-0, shelf-1"), held(absent):
        pytest.fail("a place that is not there")
    with pytest.raises(BoardError, match="none of its places has the tags soc=rv1106"), held(other):
        pytest.fail("a place that is not there")


def test_a_coordinator_that_is_not_there_is_named(farm: Farm, board: Board) -> None:
    elsewhere = board.model_copy(update={"coordinator": f"127.0.0.1:{free_port()}"})
    with (
        pytest.raises(BoardError, match=rf"{elsewhere.coordinator}: it cannot be reached.*LG_COORDINATOR"),
        held(elsewhere),
    ):
        pytest.fail("nobody there")


def test_a_place_taken_away_is_noticed_at_once(farm: Farm, board: Board) -> None:
    lost = threading.Event()
    with held(board) as place:
        place.when_lost(lost.set)
        farm.ask("release", "shelf-0")
        assert lost.wait(10)
        farm.ask("acquire", "shelf-0")
        with pytest.raises(LeaseLost, match=r"desk0 .*shelf-0 was released by somebody else"):
            place.check()
    assert farm.holders() == {"shelf-0": "elsewhere/somebody"}  # it is not ours to give back
    farm.ask("release", "shelf-0")


def test_a_check_right_after_a_kick_does_not_miss_it(farm: Farm, board: Board) -> None:
    with held(board) as place:
        farm.client("-p", "shelf-0", "release", "--kick")
        with pytest.raises(LeaseLost):
            place.check()


@takes_long
def test_a_deleted_place_is_lost(farm: Farm, board: Board) -> None:
    farm.client("-p", "extra", "create")
    farm.client("-p", "extra", "add-match", "shelf/shelf-0/NetworkService")
    with held(board.model_copy(update={"place": "extra"})) as place:
        farm.ask("release", "extra")
        farm.client("-p", "extra", "delete")
        with pytest.raises(LeaseLost):
            place.check()


@takes_long
def test_a_coordinator_that_starts_anew_has_forgotten_us(farm: Farm, board: Board) -> None:
    with held(board) as place:
        farm.kill_coordinator()
        farm.start_coordinator()
        with pytest.raises(LeaseLost, match="its coordinator started anew; nobody holds it now"):
            place.check()
        farm.start_exporter()
    with held(board) as place:
        place.check()


def test_a_coordinator_that_was_only_silent_still_knows_us(farm: Farm, board: Board) -> None:
    assert farm.coordinator is not None
    with held(board) as place:
        farm.coordinator.send_signal(19)  # SIGSTOP
        try:
            threading.Timer(2.0, farm.coordinator.send_signal, (18,)).start()
            place.check()
        finally:
            farm.coordinator.send_signal(18)


def test_without_labgrid_the_command_that_installs_it_is_named(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with (
        pytest.raises(BoardError, match="labgrid is not installed; install it with: pipx install"),
        held(board),
    ):
        pytest.fail("without labgrid")
    monkeypatch.setenv("RKNPU_LABGRID_PYTHON", sys.executable)
    if subprocess.run([sys.executable, "-c", "import labgrid.remote"], check=False, stderr=-3).returncode:
        with pytest.raises(BoardError, match="has no labgrid with a gRPC coordinator"), held(board):
            pytest.fail("without labgrid")
