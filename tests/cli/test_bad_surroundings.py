"""Files and surroundings as nobody planned them: what is said then, and that nothing is left or told on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from pytest_rknpu.cli.doctor.bounded import ask
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.explain import _PATTERNS
from pytest_rknpu.inventory.model_table import ModelTable
from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.toolchain.disk import explained
from pytest_rknpu.waivers.table import Waiver

BOARD = '[[board]]\nname = "rk-one"\nsoc = "rk3588"\n'
OVER_SSH = f'{BOARD}host = "192.0.2.7"\n'
WAIVER = (
    '[[waiver]]\nrequirement = "SYNC-01"\nboard = "rk-one"\noutcome = "fail"\nmessage = "cache"\n'
    'reason = "a \\u001b[31m"\nexpires = 2026-12-01\n'
)


def test_what_a_terminal_obeys_does_not_reach_it(rknpu, tmp_path: Path) -> None:
    # U+009B does what ESC [ does, and is in UTF-8 no control character of ASCII.
    (tmp_path / "boards.toml").write_text(f'{BOARD}runtime = "emulator"\nnote = "seen \\u009b31m red"\n')
    answer = rknpu("boards")
    assert "seen ?31m red" in answer.out
    assert all(letter.isprintable() or letter == "\n" for letter in answer.out)


@pytest.mark.parametrize("table", [Board, ModelTable, Waiver])
def test_every_key_with_a_pattern_has_words_for_it(table: type) -> None:
    for name, key in table.model_json_schema()["properties"].items():  # type: ignore[attr-defined]
        if '"pattern"' in json.dumps(key):
            assert name in _PATTERNS


def test_a_control_character_in_waivers_is_said_in_words(rknpu, tmp_path: Path) -> None:
    (tmp_path / "waivers.toml").write_text(WAIVER)
    answer = rknpu("waivers")
    assert answer.code == 2
    assert 'key "reason": must have no control characters' in answer.err


def test_arguments_in_the_string_of_the_program_are_not_told(rknpu, tmp_path: Path) -> None:
    power = 'power = {cycle = ["/opt/no-such-switch --key /etc/hunter2"]}\n'
    (tmp_path / "boards.toml").write_text(OVER_SSH + power)
    said = rknpu("boards").out + rknpu("boards", "--json").out
    said += rknpu("doctor", "--json", "--within", "1").out
    assert "no-such-switch" in said
    assert "hunter2" not in said


def test_a_list_of_samples_that_are_not_there_is_said_in_words(rknpu, tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "relu",
        [value("x", onnx.TensorProto.FLOAT, [1, 4])],
        [value("y", onnx.TensorProto.FLOAT, [1, 4])],
    )
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    np.save(tmp_path / "one.npy", np.zeros((1, 4), np.float32))
    (tmp_path / "list.txt").write_text("one.npy\ntwo.npy\n")
    answer = rknpu("compile", "m.onnx", "--soc", "rk3588", "--calibration", "list.txt")
    assert answer.code == 2
    assert answer.err.startswith("rknpu: --calibration: ")
    assert "list.txt, sample 2: " in answer.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_output_says_what_is_full(rknpu_process) -> None:
    with open("/dev/full", "w") as full:
        ended = rknpu_process("schema", stdout=full, stderr=subprocess.PIPE, capture_output=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, "rknpu: stdout: No space left on device\n")


def test_ctrl_c_ends_doctor_and_what_it_asked_at_once(tmp_path: Path) -> None:
    """A board that takes the connection and says nothing would be waited for, for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        (tmp_path / "boards.toml").write_text(f'{BOARD}host = "127.0.0.1"\nport = {port}\n')
        command = [sys.executable, "-m", "pytest_rknpu.cli", "doctor", "--within", "60"]
        doctor = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        silent.settimeout(30)
        knocking, _ = silent.accept()
        doctor.send_signal(signal.SIGINT)
        begin = time.monotonic()
        said = doctor.communicate(timeout=50)[1]
        assert (doctor.returncode, said) == (130, "")
        assert time.monotonic() - begin < 10
        knocking.settimeout(10)
        while knocking.recv(1000):  # ssh's greeting; then its end, as it is gone
            pass
        knocking.close()


def test_a_program_that_is_asked_elsewhere_is_not_given_up_afterwards() -> None:
    from pytest_rknpu.cli.doctor.bounded import give_up

    give_up()
    assert ask([sys.executable, "-c", "print('here')"], 30).said.strip() == "here"


def test_what_cannot_be_looked_at_is_not_said_to_be_missing(rknpu, tmp_path: Path) -> None:
    """As behind a folder that is closed to this user; a name that is too long does the same to root."""
    unseen = "n" * 300
    (tmp_path / "boards.toml").write_text(f'{OVER_SSH}key = "{tmp_path}/{unseen}"\n')
    boards = rknpu("doctor", "--within", "1").out
    assert "cannot be looked at: File name too long" in boards
    assert "is not there" not in boards
    file = rknpu("doctor", "--boards", unseen).out
    assert "cannot be read: " in file
    assert "rknpu init" not in file


def test_a_cache_whose_parent_cannot_be_made_says_what_chooses_another() -> None:
    refused = PermissionError(13, "Permission denied", "/nobody")
    with (
        pytest.raises(ConfigurationError, match="RKNPU_CACHE_DIR"),
        explained(Path("/nobody/.cache/pytest-rknpu"), "the cache", "RKNPU_CACHE_DIR"),
    ):
        raise refused
