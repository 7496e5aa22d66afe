"""`rknpu boards`: what is there, what it can do, why it cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from pytest_rknpu.cli import availability as module
from pytest_rknpu.cli.availability import Availability, availability
from pytest_rknpu.inventory.board_table import Board, Runtime, Transport
from pytest_rknpu.toolchain import ToolkitStatus

FAR = Board.model_validate({"name": "far", "soc": "rk3588", "host": "192.0.2.7"})
HERE = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local")


@pytest.fixture
def no_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ToolkitStatus(None, "RKNN-Toolkit2 is not installed", "pip install it")
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: missing)


def test_the_shipped_boards_without_the_toolkit(rknpu, no_toolkit) -> None:
    answer = rknpu("boards")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    states = {line.split()[0]: line.split("  ")[-1].strip() for line in lines[1:] if not line.startswith(" ")}
    assert lines[0].endswith(f"boards.toml: {len(states)} boards")
    assert {name for name, state in states.items() if state == "usable"} == {
        "emu-rk3588",
        "emu-rk3576",
        "emu-rv1106",
    }
    assert {"sim-rk3588", "sim-rk3576"} <= states.keys()
    assert {state for name, state in states.items() if name.startswith("sim-")} == {
        "not usable: RKNN-Toolkit2 is not installed; install it with: pip install it"
    }
    assert "    3 NPU cores, librknnrt (64-bit contexts), copying API and zero copy, core masks" in answer.out
    assert "    1 NPU core, librknnmrt (32-bit contexts), zero copy only, no core masks" in answer.out


def test_the_same_as_json(rknpu, no_toolkit) -> None:
    answer = rknpu("boards", "--json")
    boards = {board["name"]: board for board in json.loads(answer.out)["boards"]}
    assert {name: board["usable"] for name, board in boards.items()} == {
        name: name.startswith("emu-") for name in boards
    }
    assert boards["sim-rk3588"]["reason"].endswith("; install it with: pip install it")
    assert boards["emu-rk3576"]["evidence"] == "emulator"
    assert boards["emu-rk3576"]["soc_facts"]["core_masks"][-1] == "RKNN_NPU_CORE_ALL"
    assert boards["emu-rv1106"]["soc_facts"]["feature_atom"] == {"int8": 16, "float16": 8, "int16": 8}
    assert "rknn_inputs_set" in boards["emu-rv1106"]["soc_facts"]["unsupported_functions"]


def test_the_working_folder_comes_first_and_an_option_before_it(rknpu, tmp_path: Path) -> None:
    def write(name: str, board: str) -> str:
        table = f'[[board]]\nname = "{board}"\nsoc = "rk3588"\nruntime = "emulator"\n'
        (tmp_path / name).write_text(table + 'tags = { site = "lab-2" }\nnote = "two\\nlines"\n')
        return name

    write("boards.toml", "mine")
    answer = rknpu("boards")
    assert answer.out.splitlines()[1].split()[:4] == ["mine", "rk3588", "emulator", "emulator"]
    assert answer.out.splitlines()[3:] == ["    tags: site=lab-2", "    two lines"]
    assert "lab-board" in rknpu("boards", "--boards", write("lab.toml", "lab-board")).out


def test_a_real_board_is_never_called_usable_unasked(rknpu, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(
        '[[board]]\nname = "far"\nsoc = "rk3588"\nhost = "192.0.2.7"\nuser = "me"\nport = 2222\n'
    )
    answer = rknpu("boards", "--json")
    (board,) = json.loads(answer.out)["boards"]
    assert (board["usable"], board["evidence"]) == (None, "hardware")
    assert "ssh me@192.0.2.7 port 2222" in rknpu("boards").out


def test_ssh_needs_a_client_and_its_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module.shutil, "which", {"ssh": "/usr/bin/ssh"}.get)
    assert availability(FAR).sentence() == "not tried: ssh is here; the board was not contacted"
    missing = FAR.model_copy(update={"ssh_config": str(tmp_path / "none")})
    assert availability(missing) == Availability(False, f"ssh_config {tmp_path / 'none'} is not there")
    missing = FAR.model_copy(update={"key": str(tmp_path / "id")})
    assert availability(missing) == Availability(False, f"key {tmp_path / 'id'} is not there")
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert availability(FAR).sentence().startswith("not usable: there is no ssh on this host")


def test_files_in_a_folder_that_this_user_may_not_look_into(monkeypatch: pytest.MonkeyPatch) -> None:
    def barred(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", barred)
    for key in ("ssh_config", "key"):
        assert availability(FAR.model_copy(update={key: "/root/none"})).usable is False


def test_adb_needs_a_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rknpu) -> None:
    from pytest_rknpu.transport import adb

    (tmp_path / "boards.toml").write_text('[[board]]\nname = "far"\nsoc = "rk3588"\nserial = "A1:5555"\n')
    monkeypatch.setattr(adb, "_toolkit_folders", list)
    monkeypatch.setattr(adb.shutil, "which", lambda name: f"/usr/bin/{name}")
    told = rknpu("boards").out
    assert "adb device A1:5555" in told
    assert "not tried: /usr/bin/adb is here; the board was not contacted" in told
    monkeypatch.setattr(adb.shutil, "which", lambda name: None)
    assert "not usable: there is no adb on this host; install it" in rknpu("boards").out


@pytest.mark.parametrize(
    ("content", "usable", "words"),
    [
        (b"rockchip,rk3588-orangepi-5-plus\0rockchip,rk3588\0", None, "this machine is a rk3588"),
        (
            b"rockchip,rk3568-evb\0rockchip,rk3568\0",
            False,
            "rk3568-evb, rockchip,rk3568, not rk3588",
        ),
        (b"\xff\xfe\0", False, "not rk3588"),
        (b"", False, "not rk3588"),
        (None, False, "cannot be read"),
    ],
)
def test_a_local_board_is_this_machine(tmp_path: Path, monkeypatch, content, usable, words) -> None:
    file = tmp_path / "compatible"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr(module, "DEVICE_TREE", file)
    found = availability(HERE)
    assert found.usable is usable
    assert words in (found.reason or "")


def test_every_kind_of_board_can_be_looked_at() -> None:
    for runtime in get_args(Runtime):
        if runtime == "librknnrt":
            continue
        assert availability(Board(name="one", soc="rk3588", runtime=runtime)).usable in (True, False, None)
    for transport in get_args(Transport):
        table = {"name": "one", "soc": "rk3588", "runtime": "librknnrt", "transport": transport}
        where = {"ssh": {"host": "192.0.2.7"}, "labgrid": {"place": "shelf-1"}}.get(transport, {})
        board = Board.model_validate(table | where)
        assert availability(board).usable in (False, None)


def test_a_connected_board_needs_the_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(name="one", soc="rk3588", runtime="connected")
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: ToolkitStatus("2.5.0", ""))
    assert availability(board).sentence() == (
        "not tried: RKNN-Toolkit2 2.5.0 is here; the board was not contacted"
    )
    monkeypatch.setattr(
        "pytest_rknpu.toolchain.toolkit_status", lambda: ToolkitStatus(None, "missing", "pip")
    )
    assert availability(board) == Availability(False, "missing; install it with: pip")


def test_an_emulator_without_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(name="emu", soc="rk3588", runtime="emulator")
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert availability(board) == Availability(False, "the Python module onnx is missing; pip install onnx")


def test_the_toolkit_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: ToolkitStatus("2.5.0", ""))
    board = Board(name="sim", soc="rk3588", runtime="simulator")
    assert availability(board) == Availability(True, "RKNN-Toolkit2 2.5.0")


def test_places_of_a_farm(rknpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "farm.toml"
    farm = '[[board]]\nname = "{}"\nsoc = "rk3588"\ncoordinator = "farm:20408"\npool = "p"\n{}\n'
    file.write_text(farm.format("one", 'place = "opi-1"') + farm.format("any", 'filter = { soc = "rk3588" }'))
    monkeypatch.setenv("RKNPU_LABGRID_PYTHON", "/labgrid/bin/python")
    answer = rknpu("boards", "--boards", str(file))
    assert answer.code == 0
    assert answer.out.count("labgrid and ssh are here; coordinator farm:20408 was not contacted") == 2
    for words in ("labgrid place opi-1", "labgrid place with the tags soc=rk3588", "pool: p"):
        assert words in answer.out
    monkeypatch.delenv("RKNPU_LABGRID_PYTHON")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "not usable: labgrid is not installed" in rknpu("boards", "--boards", str(file)).out


def test_arguments_of_a_power_command_are_not_told(rknpu, tmp_path: Path) -> None:
    power = 'power = { cycle = ["/opt/bin/pdu", "--password", "hunter2"], wait_s = 60 }\n'
    (tmp_path / "boards.toml").write_text(
        '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n' + power
    )
    answer = rknpu("boards", "--json")
    (board,) = json.loads(answer.out)["boards"]
    assert board["power"] == {"program": "pdu", "wait_s": 60.0, "limit_s": 60.0}
    assert "hunter2" not in answer.out + rknpu("boards").out
