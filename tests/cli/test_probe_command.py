"""`rknpu probe`: every kind of board, what is missing there, and an exit code that scripts can go by."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.cli.probe import probed_json, probed_text
from pytest_rknpu.errors import BoardLost
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.session.missing import Missing
from pytest_rknpu.session.probing import Probed, probe_board
from pytest_rknpu.toolchain import board as device_calls
from pytest_rknpu.toolchain.board import Devices
from tests.loopback_sshd import needs_sshd, running_sshd

PAGE = Path(__file__).parents[2] / "docs" / "probe.md"

EMULATED = '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'
LOCAL = '[[board]]\nname = "here"\nsoc = "rk3588"\nruntime = "librknnrt"\ntransport = "local"\n'


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of a table are looked for: lines must not break within them."""
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def boards(tmp_path: Path):
    """Write a boards.toml into the working folder."""

    def write(text: str) -> None:
        (tmp_path / "boards.toml").write_text(text)

    return write


def test_an_emulated_board_is_usable(rknpu, boards) -> None:
    boards(EMULATED)
    answer = rknpu("probe", "--board", "emu")
    assert answer.code == 0, answer.err
    assert "emu: rk3588, emulator (emulator): usable" in answer.out
    for words in ("emulated 2.3.2", "/dev/dri/renderD129, driver RKNPU", "emulated 0.9.8", "rockchip,rk3588"):
        assert words in answer.out
    assert "missing" not in answer.out


def test_json_has_the_documented_keys(rknpu, boards) -> None:
    boards(EMULATED)
    answer = rknpu("probe", "--board", "emu", "--json")
    assert answer.code == 0
    document = json.loads(answer.out)
    table = PAGE.read_text(encoding="utf-8").partition("\n## JSON\n")[2].partition("\n## ")[0]
    assert list(document) == re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert document["format"] == 1
    assert document["usable"] is True
    assert document["missing"] == []
    assert document["versions"]["runtime"] == "emulated 2.3.2"
    assert "rknn_run" in document["functions"]
    assert document["facts"]["npu_access"] == {"value": {"node": "/dev/dri/renderD129", "refused": []}}


def test_the_words_for_what_is_missing_are_documented() -> None:
    from pytest_rknpu.session import missing, probing

    source = Path(missing.__file__).read_text() + Path(probing.__file__).read_text()
    used = set(
        re.findall(r'(?:Missing\(\s*|_failed\(|^        "\w+",\n        )"([a-z0-9-]+)"', source, re.M)
    )
    table = PAGE.read_text(encoding="utf-8").partition("\n## What can be missing\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z0-9-]+)`", table, re.MULTILINE)) == used


@pytest.mark.parametrize(
    ("fault", "what"), [("npu-node-missing", "npu-driver"), ("wrong-device-tree", "soc")]
)
def test_what_is_missing_gives_exit_code_1(rknpu, boards, fault: str, what: str) -> None:
    boards(EMULATED + f'faults = ["{fault}"]\n')
    answer = rknpu("probe", "--board", "emu", "--json")
    assert answer.code == 1
    (problem,) = json.loads(answer.out)["missing"]
    assert (problem["what"], problem["needed"]) == (what, True)
    assert problem["why"]
    assert problem["remedy"]


def test_a_board_without_a_runtime_is_looked_at_all_the_same(rknpu, boards) -> None:
    boards(LOCAL)
    answer = rknpu("probe", "--board", "here")
    assert answer.code == 1
    assert "NOT USABLE" in answer.out
    folded = " ".join(answer.out.split())
    assert "runtime-library" in folded
    assert "npu-driver" in folded
    assert "copy librknnrt.so from the SDK's rknpu2/runtime/Linux/librknn_api" in folded


@pytest.mark.parametrize(
    ("model", "runtime", "problem"),
    [
        (b"FAKE model", "fake 1.0", None),
        (b"damaged", None, "rknn_init returned -6 (RKNN_ERR_MODEL_INVALID)"),
    ],
)
def test_the_runtime_is_asked(
    fake_runtime: str, monkeypatch: pytest.MonkeyPatch, model: bytes, runtime: str | None, problem: str | None
) -> None:
    for module in ("versions", "probing"):
        monkeypatch.setattr(f"pytest_rknpu.session.{module}.artifact_for", lambda *_: model)
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", library=fake_runtime)
    probed = probe_board(board)
    assert "npu-driver" in {found.what for found in probed.missing}  # this host has none
    assert probed.agent is not None
    assert "rknn_run" in probed.functions
    if runtime is not None:
        assert probed.versions["runtime"] == runtime
    problems = {found.what: found for found in probed.missing}
    assert ("runtime" in problems) is (problem is not None)
    if problem is not None:
        assert problem in probed.versions["runtime"]


def test_a_library_that_is_none_is_named(tmp_path: Path) -> None:
    library = tmp_path / "librknnrt.so"
    library.write_bytes(b"<html>404")
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", library=str(library))
    problems = {found.what: found for found in probe_board(board).missing}
    assert "invalid ELF header: this is a web page" in problems["runtime-library"].why


def test_a_runtime_that_crashes_is_named(fake_runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(session: Any) -> None:
        raise BoardLost("board here: the agent's process ended during 'execute'")

    monkeypatch.setattr("pytest_rknpu.session.probing.identify", crash)
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", library=fake_runtime)
    probed = probe_board(board)
    assert "ended the agent" in next(found.why for found in probed.missing if found.what == "runtime")
    assert probed.versions["kernel"]
    assert probed.facts


@needs_sshd
def test_boards_over_ssh(rknpu, boards, tmp_path: Path) -> None:
    farm = tmp_path / "farm"
    farm.mkdir()
    with running_sshd(farm) as sshd:
        common = f'soc = "rk3588"\nhost = "desk-board"\nssh_config = "{sshd.config}"\n'
        boards(
            f'[[board]]\nname = "good"\nruntime = "emulator"\ntransport = "ssh"\n{common}'
            f'python = "{sys.executable}"\n'
            f'[[board]]\nname = "no-python"\n{common}python = "python-nowhere"\n'
            f'[[board]]\nname = "no-runtime"\n{common}python = "{sys.executable}"\n'
        )
        good = rknpu("probe", "--board", "good", "--json")
        assert good.code == 0, good.out + good.err
        nowhere = rknpu("probe", "--board", "no-python", "--json")
        assert nowhere.code == 1
        (problem,) = json.loads(nowhere.out)["missing"]
        assert problem["what"] == "connection"
        assert "python-nowhere" in problem["why"]
        bare = rknpu("probe", "--board", "no-runtime", "--json")
        assert bare.code == 1
        assert "runtime-library" in {problem["what"] for problem in json.loads(bare.out)["missing"]}


def old_python(folder: Path) -> str:
    """What answers like a Python 3.7."""
    script = folder / "python3"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *version*) echo "pytest-rknpu: this is Python 3.7.3" >&2;; esac\nexit 1\n'
    )
    script.chmod(0o755)
    return str(script)


@needs_sshd
def test_a_python_that_is_too_old_is_named(rknpu, boards, tmp_path: Path) -> None:
    farm = tmp_path / "farm"
    farm.mkdir()
    with running_sshd(farm) as sshd:
        boards(
            f'[[board]]\nname = "old"\nsoc = "rk3588"\nhost = "desk-board"\nssh_config = "{sshd.config}"\n'
            f'python = "{old_python(tmp_path)}"\n'
        )
        answer = rknpu("probe", "--board", "old", "--json")
    assert answer.code == 1
    (problem,) = json.loads(answer.out)["missing"]
    assert "Python 3.7.3 there is too old, 3.8 or newer is needed" in problem["why"]
    assert "Python 3.8" in problem["remedy"]


class Status:
    """Of a toolkit that is there, or not."""

    def __init__(self, version: str | None) -> None:
        self.version = version
        self.reason = "RKNN-Toolkit2 is not there"
        self.install_command = "pip install 'pytest-rknpu[toolkit]'"


@pytest.mark.parametrize(("version", "code"), [("2.5.0", 0), (None, 1)])
def test_a_simulator(rknpu, boards, monkeypatch: pytest.MonkeyPatch, version: str | None, code: int) -> None:
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: Status(version))
    boards('[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n')
    answer = rknpu("probe", "--board", "sim", "--json")
    assert answer.code == code
    document = json.loads(answer.out)
    assert document["agent"] is None
    if version is None:
        assert document["missing"][0]["what"] == "toolkit"
        assert "pip install" in document["missing"][0]["remedy"]
    else:
        assert document["versions"]["toolkit"] == version


def test_a_connected_board_that_is_not_there(rknpu, boards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: Status("2.5.0"))
    monkeypatch.setattr(device_calls, "list_devices", lambda: Devices((), ()))
    boards('[[board]]\nname = "usb"\nsoc = "rv1106"\nruntime = "connected"\n')
    answer = rknpu("probe", "--board", "usb")
    assert answer.code == 1
    assert "finds no device" in " ".join(answer.out.split())


def test_no_such_board(rknpu, boards) -> None:
    boards(EMULATED)
    answer = rknpu("probe", "--board", "emo")
    assert answer.code == 2
    assert 'has no board "emo" (did you mean "emu"?)' in answer.err


def test_a_board_that_somebody_has_is_not_disturbed(rknpu, boards, tmp_path: Path) -> None:
    from pytest_rknpu.farm.lease import lease, this_process

    boards(EMULATED)
    key = Board(name="emu", soc="rk3588", runtime="emulator").lease_key(tmp_path / "boards.toml")
    with lease({"emu": key}, this_process("run-7", "pytest suites"), wait_s=0, tell=print):
        answer = rknpu("probe", "--board", "emu", "--wait", "0.2")
    assert answer.code == 2
    assert "pytest suites" in answer.err


def test_a_stand_in_that_is_not_declared_is_named(fake_runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RKNPU_STAND_IN_X", "1")
    monkeypatch.setattr("pytest_rknpu.session.versions.artifact_for", lambda *_: b"FAKE model")
    monkeypatch.setattr("pytest_rknpu.session.probing.artifact_for", lambda *_: b"FAKE model")
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", library=fake_runtime)
    probed = probe_board(board)
    assert "a stand-in for the NPU's driver" in next(
        found.why for found in probed.missing if found.what == "evidence"
    )
    assert "told by the environment variable RKNPU_STAND_IN_X" in " ".join(probed_text(probed, 200).split())


HOSTILE = "\x1b]0;owned\x07\x1b[2J[red]\ud800\n"


def hostile() -> Probed:
    """A board whose files hold what a terminal or a file would choke on."""
    return Probed(
        Board(name="here", soc="rk3588", runtime="librknnrt", transport="local"),
        versions={"bsp": HOSTILE, "kernel": "[bold]x[/nothing]"},
        facts={
            "device_tree_compatible": {"value": [HOSTILE]},
            "npu_kernel_log": {"value": [{"text": HOSTILE, "level": None}]},
            "thermal": {"value": [{"type": None, "millidegrees": 1000}]},
        },
        missing=(Missing("soc", HOSTILE, HOSTILE, needed=True),),
    )


@pytest.mark.parametrize("width", [1, 20, 80, 300])
def test_nothing_of_a_board_reaches_the_terminal_as_a_command(width: int) -> None:
    text = probed_text(hostile(), width)
    assert not set(text) & {"\x1b", "\x07"}
    text.encode("utf-8", "backslashreplace")
    if width > 100:
        assert "[bold]x[/nothing]" in text


def test_json_can_always_be_written() -> None:
    document = json.loads(probed_json(hostile()).encode("utf-8"))
    assert document["versions"]["bsp"].startswith("\x1b]0;owned")


def test_no_secret_of_boards_toml_or_kernel_is_shown(rknpu, boards, monkeypatch, tmp_path: Path) -> None:
    from pytest_rknpu import emulator

    make_root = emulator.make_root

    def with_secrets(folder: Path, *arguments: Any) -> None:
        make_root(folder, *arguments)
        (folder / "proc/cmdline").write_text("root=/dev/x androidboot.serialno=c3d9b867 wifi_psk=hunter2\n")
        (folder / "etc/vendor-release").write_text('{"api_token": "hunter2"}')

    monkeypatch.setattr(emulator, "make_root", with_secrets)
    boards(EMULATED + 'note = "password hunter2"\n')
    for arguments in (("--json",), ()):
        answer = rknpu("probe", "--board", "emu", *arguments)
        assert answer.code == 0
        assert "hunter2" not in answer.out + answer.err
        assert "c3d9b867" not in answer.out + answer.err


def test_a_library_that_crashes_when_it_is_opened_is_named(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (gcc or cc) to build a library with")
    source = tmp_path / "crash.c"
    source.write_text(
        "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }\n"
    )
    library = tmp_path / "librknnrt.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    board = Board(name="here", soc="rk3588", runtime="librknnrt", transport="local", library=str(library))
    probed = probe_board(board)
    problems = {found.what: found for found in probed.missing}
    assert "opening it ended the agent" in problems["runtime-library"].why
    assert "npu-driver" in problems
    assert probed.versions["kernel"]
