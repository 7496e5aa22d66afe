"""A stand-in says what it is, and nobody can pass it off as hardware, nor hardware as a stand-in."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_rknpu.agent.readers import Absent, Root
from pytest_rknpu.agent.stand_in import find
from pytest_rknpu.errors import BoardError, ConfigurationError
from pytest_rknpu.inventory.schema import Board, load_boards
from pytest_rknpu.session.board_session import connect, require_as_declared
from tests.vendor_rig.conftest import MakeBoard, RunSuites
from tests.vendor_rig.rig import RigBoard

AGENT = Path(__file__).resolve().parents[2] / "pytest_rknpu" / "agent"
# The agent's own module, alone: what the driver of a node says of itself.
DESCRIBE = f"""
import sys, types
package = types.ModuleType("agent"); package.__path__ = [{str(AGENT)!r}]; sys.modules["agent"] = package
from agent.stand_in import describe
print(describe(sys.argv[1]))
"""


def boards_file(board: RigBoard, folder: Path, **changes: str) -> Board:
    """The board as boards.toml describes it; ``changes`` replace text of its table."""
    text = board.table
    for old, new in changes.items():
        text = text.replace(old.replace("_", " "), new)
    file = folder / "boards.toml"
    file.write_text(text)
    return load_boards(file).boards[0]


def test_its_results_are_called_vendor_runtime(board: MakeBoard, tmp_path: Path) -> None:
    declared = boards_file(board(), tmp_path)
    assert declared.evidence == "vendor-runtime"
    assert declared.without_time is not None


def test_a_stand_in_on_a_board_declared_hardware_is_refused(
    board: MakeBoard, run_suites: RunSuites, tmp_path: Path
) -> None:
    rig = board()
    hardware = rig.table.replace("stand_in = true\n", "")
    run = run_suites(rig, "versions/test_identity.py", boards=hardware)
    assert set(run.outcomes()) == {"infra"}, run.text[-3000:]
    for record in run.records:
        assert "a stand-in for the NPU's driver answers there" in record["message"]
        assert record["evidence"] == "hardware"  # what boards.toml claims; nothing passed under that name


def test_hardware_on_a_board_declared_a_stand_in_is_refused() -> None:
    declared = Board(name="one", soc="rk3588", runtime="librknnrt", transport="local", stand_in=True)
    with pytest.raises(BoardError, match="no stand-in answers there"):
        require_as_declared(declared, {"stand_in": {"absent": "nothing says so"}})


def test_the_session_names_what_gave_it_away(board: MakeBoard, tmp_path: Path) -> None:
    declared = boards_file(board(), tmp_path)
    with ExitStack() as resources:
        session = connect(declared, seed=1, resources=resources)
        resources.callback(session.close)
        assert "RKNPU_STAND_IN_" in session.facts["stand_in"]["value"]["told_by"]


def test_the_driver_itself_says_so(board: MakeBoard) -> None:
    done = subprocess.run(
        [str(board().python), "-c", DESCRIBE, "/dev/dri/card0"], capture_output=True, text=True, check=True
    )
    assert "stand-in" in done.stdout


def test_a_real_machine_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Absent, match="neither a driver nor the environment"):
        find(Root("/"))
    monkeypatch.setenv("RKNPU_STAND_IN_SOC", "rk3588")
    assert find(Root("/")) == {"told_by": "the environment variable RKNPU_STAND_IN_SOC"}


@pytest.mark.parametrize("runtime", ["emulator", "simulator"])
def test_software_is_no_stand_in(tmp_path: Path, runtime: str) -> None:
    file = tmp_path / "boards.toml"
    file.write_text(f'[[board]]\nname = "one"\nsoc = "rk3588"\nruntime = "{runtime}"\nstand_in = true\n')
    with pytest.raises(ConfigurationError, match='key "stand_in": only for runtime = "librknnrt"'):
        load_boards(file)
