"""`rknpu doctor`: what is missing, where, and the command or edit that mends it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_rknpu.cli.doctor import Severity, examine
from pytest_rknpu.cli.doctor.finding import HOST, Finding, ok
from pytest_rknpu.toolchain import ToolkitStatus
from tests.adb_server import needs_adb, running_adb_server
from tests.loopback_sshd import Sshd, free_port, make_key, needs_sshd, running_sshd

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
EMULATED = '[[board]]\nname = "emu"\nsoc = "rk3588"\nruntime = "emulator"\n'
SIMULATED = '[[board]]\nname = "sim"\nsoc = "rk3588"\nruntime = "simulator"\n'
SECRET = "hunter2-and-more"


@pytest.fixture(autouse=True)
def _no_import_of_the_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds, and has tests of its own."""
    monkeypatch.setattr(
        "pytest_rknpu.cli.doctor.examination.toolkit", lambda status: ok("toolkit", HOST, "not looked at")
    )


@pytest.fixture
def findings(tmp_path: Path):
    """What is found with this boards.toml, by (what, where); whatever is not ok says how it is mended."""

    def look(text: str, *globs: str, seconds: float = 5.0) -> dict[tuple[str, str], Finding]:
        file = tmp_path / "boards.toml"
        file.write_text(text)
        examined = examine(file, globs, tmp_path, seconds)
        for finding in examined.findings:
            assert bool(finding.mend) is (finding.severity is not Severity.OK), finding
        return {(found.what, found.where): found for found in examined.findings}

    return look


def board(name: str, **keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, "soc": "rk3588", **keys}.items()]
    return "\n".join(["[[board]]", *lines, ""])


def test_nothing_prevents_a_run(rknpu, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(EMULATED)
    answer = rknpu("doctor")
    assert (answer.code, answer.err) == (0, "")
    assert "\nboards\n  OK      emu: usable\n" in answer.out
    assert answer.out.splitlines()[-1].startswith("nothing prevents a run; ")
    assert not list((tmp_path / "leases").glob("*.lock")), "a lease was taken"


def test_the_same_for_scripts(rknpu, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(EMULATED + board("gone", host="127.0.0.1", port=free_port()))
    answer = rknpu("doctor", "--json")
    assert answer.code == 1
    document = json.loads(answer.out)
    documented = PAGE.read_text(encoding="utf-8").partition("\n### doctor --json\n")[2].partition("\n#")[0]
    assert list(document) == re.findall(r"^\| `(\w+)`", documented, re.MULTILINE)
    assert document["usable"] is False
    assert document["boards"] == ["emu", "gone"]
    assert {finding["severity"] for finding in document["findings"]} >= {"ok", "problem"}
    assert list(document["findings"][0]) == ["what", "where", "severity", "says", "mend"]
    chosen = rknpu("doctor", "--board", "e*", "--json")
    assert chosen.code == 0
    assert json.loads(chosen.out)["boards"] == ["emu"]


def test_the_words_are_documented() -> None:
    source = "".join(
        file.read_text() for file in (Path(__file__).parents[2] / "pytest_rknpu/cli/doctor").glob("*.py")
    )
    used = set(re.findall(r'(?:ok|note|problem|missing|folder)\(\s*"([a-z-]+)"', source)) | {"reach"}
    documented = PAGE.read_text(encoding="utf-8").partition("\n### What it looks at\n")[2].partition("\n#")[0]
    assert set(re.findall(r"^\| `([a-z-]+)`", documented, re.MULTILINE)) == used


def test_a_board_that_does_not_exist_is_a_usage_error(rknpu, tmp_path: Path) -> None:
    (tmp_path / "boards.toml").write_text(EMULATED)
    answer = rknpu("doctor", "--board", "emv")
    assert (answer.code, answer.out) == (2, "")
    assert 'did you mean "emu"?' in answer.err


def test_all_that_is_wrong_with_the_file_is_told(rknpu, tmp_path: Path) -> None:
    text = EMULATED.replace("rk3588", "rk3589") + board("two", hots="x")
    (tmp_path / "lab.toml").write_text(
        text
        + '[[model]]\nname = "m"\npath = "m.onnx"\n[[budget]]\nmodel = "x"\nsoc = "rk3588"\np50_ms = 3.0\n'
    )
    answer = rknpu("doctor", "--boards", "lab.toml")
    assert answer.code == 1
    for mend in (
        '[[board]] 1 ("emu"), key "soc"',
        '[[board]] 2 ("two")',
        '[[model]] 1 ("m"), key "path"',
        '[[budget]] 1 ("x"), key "model"',
    ):
        assert f"-> edit lab.toml: {mend}\n" in answer.out
    assert "OK      python" in answer.out, "the host is looked at all the same"
    missing = rknpu("doctor", "--boards", "new lab/boards.toml")
    assert missing.code == 1
    assert "-> rknpu init 'new lab'\n" in missing.out


def test_what_is_odd_in_the_file_is_a_note(findings) -> None:
    found = findings(EMULATED + board("far", host="127.0.0.1", port=free_port(), host_key="unchecked"), "emu")
    says = [one for (what, _), one in found.items() if what == "boards-file"]
    assert any(one.severity is Severity.NOTE and '"far", key "host_key"' in str(one.mend) for one in says)


def test_a_simulator_without_the_toolkit(findings, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ToolkitStatus(None, "RKNN-Toolkit2 is not installed")
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: missing)
    found = findings(EMULATED + SIMULATED)
    assert found["board", "board sim"].severity is Severity.NOTE
    assert found["board", "board sim"].mend == "pip install 'pytest-rknpu[toolkit]'"
    assert not any(what == "boards" for what, _ in found)
    (alone,) = [one for (what, _), one in findings(SIMULATED).items() if what == "boards"]
    assert (alone.severity, alone.says) == (Severity.PROBLEM, "none of 1 board can be used from here")
    connected = findings(EMULATED + board("usb", runtime="connected"))["board", "board usb"]
    assert (connected.severity, connected.mend) == (Severity.PROBLEM, "pip install 'pytest-rknpu[toolkit]'")


@pytest.mark.parametrize("expires", ["2020-01-31", None])
def test_waivers(findings, tmp_path: Path, expires: str | None) -> None:
    table = (
        '[[waiver]]\nrequirement = "SYNC-07"\nboard = "emu"\nmessage = "lost"\nreason = "known"\n'
        f"expires = {expires or time.strftime('%Y-%m-%d', time.gmtime())}\n"
    )
    (tmp_path / "waivers.toml").write_text(table)
    found = findings(EMULATED)["waivers", str(tmp_path / "waivers.toml")]
    assert found.severity is (Severity.NOTE if expires else Severity.OK)
    (tmp_path / "waivers.toml").write_text(table.replace("SYNC-07", "SYNC-77"))
    found = findings(EMULATED)["waivers", str(tmp_path / "waivers.toml")]
    assert found.severity is Severity.PROBLEM
    assert 'key "requirement"' in found.says


def test_no_secret_is_told(rknpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDU_PASSWORD", SECRET)
    power = f'power = {{ cycle = ["no-such-switch", "--password", "{SECRET}"] }}\nnote = "{SECRET}"\n'
    (tmp_path / "boards.toml").write_text(EMULATED + power)
    for arguments in ([], ["--json"]):
        answer = rknpu("doctor", *arguments)
        assert answer.code == 0
        assert "there is no program no-such-switch" in answer.out
        assert SECRET not in answer.out + answer.err
    (tmp_path / "boards.toml").write_text(EMULATED + power.replace("cycle", "cyclo"))
    assert SECRET not in rknpu("doctor").out


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    farm = tmp_path / "farm"
    farm.mkdir()
    with running_sshd(farm) as server:
        yield server


def over(sshd: Sshd, name: str = "desk", **keys: object) -> str:
    return board(name, **{"host": "desk-board", "ssh_config": str(sshd.config), **keys})


@needs_sshd
def test_a_board_over_ssh_is_knocked_at_and_not_entered(findings, sshd: Sshd) -> None:
    found = findings(over(sshd))["reach", "board desk"]
    assert (found.severity, found.says) == (
        Severity.OK,
        "answers ssh, its host key is known; nobody logged in (rknpu probe does)",
    )
    deadline = time.monotonic() + 5
    while "[preauth]" not in (log := (sshd.folder / "sshd.log").read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)  # it is written after we have gone
    assert "[preauth]" in log
    assert "Accepted" not in log


@needs_sshd
def test_a_host_key_that_is_not_known(findings, sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    found = findings(over(sshd))["reach", "board desk"]
    assert found.severity is Severity.PROBLEM
    assert found.mend == f"ssh -o StrictHostKeyChecking=ask -F {sshd.config} desk-board true"
    found = findings(over(sshd, host_key="accept-new"))["reach", "board desk"]
    assert found.severity is Severity.NOTE
    assert sshd.known_hosts.read_text() == "", "the doctor changes nothing"
    assert findings(over(sshd, host_key="unchecked"))["reach", "board desk"].severity is Severity.OK


@needs_sshd
def test_a_host_key_that_has_changed_and_what_mends_it(findings, sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    other = (tmp_path / "other.pub").read_text()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {other}")
    found = findings(over(sshd))["reach", "board desk"]
    assert found.severity is Severity.PROBLEM
    assert "not the one that is known" in found.says
    assert str(found.mend).startswith("ssh-keygen -f ")
    subprocess.run(shlex.split(str(found.mend)), check=True, capture_output=True)
    assert "StrictHostKeyChecking=ask" in str(findings(over(sshd))["reach", "board desk"].mend)


@needs_sshd
def test_keys(findings, sshd: Sshd, tmp_path: Path) -> None:
    copy = tmp_path / "id"
    shutil.copy(sshd.key, copy)
    text = over(sshd, key=str(copy))
    assert ("key", "board desk") not in findings(text)
    copy.chmod(0o644)
    found = findings(text)["key", "board desk"]
    assert (found.severity, found.mend) == (Severity.PROBLEM, f"chmod 600 {copy}")
    subprocess.run(shlex.split(str(found.mend)), check=True)
    assert ("key", "board desk") not in findings(text)
    found = findings(over(sshd, key=f"{sshd.key}.pub"))["key", "board desk"]
    assert found.severity is Severity.PROBLEM
    assert str(found.mend).endswith('key "key": the private one, without .pub')
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", SECRET, "-f", str(copy)], check=True)
    found = findings(text)["key", "board desk"]
    assert (found.severity, found.mend) == (Severity.NOTE, f"ssh-add {copy}")
    found = findings(over(sshd, key=str(tmp_path / "none")))["board", "board desk"]
    assert str(found.mend).endswith('[[board]] "desk", key "key"')


@needs_sshd
def test_boards_that_cannot_be_reached(findings, sshd: Sshd) -> None:
    found = findings(
        over(sshd, "refused", port=free_port())
        + over(sshd, "nowhere", host="no-such-host.invalid")
        + over(sshd, "behind", host="192.0.2.7", jump=f"lab@127.0.0.1:{free_port()}")
    )
    mends = {name: str(found["reach", f"board {name}"].mend) for name in ("refused", "nowhere", "behind")}
    assert mends["refused"].startswith("on the board: systemctl enable --now ssh")
    assert mends["nowhere"].endswith('[[board]] "nowhere", key "host"')
    assert mends["behind"].endswith('[[board]] "behind", key "jump" (or "key")')
    assert {one.severity for (what, _), one in found.items() if what == "reach"} == {Severity.PROBLEM}


@needs_sshd
def test_a_proxy_of_the_ssh_configuration(findings, tmp_path: Path) -> None:
    (tmp_path / "config").write_text("Host desk\n  ProxyCommand sleep 60\n")
    found = findings(board("desk", host="desk", ssh_config="config"), seconds=1)["reach", "board desk"]
    assert found.severity is Severity.PROBLEM
    assert str(found.mend).endswith(f"ssh -G -F {tmp_path}/config desk shows which")


def test_a_program_that_hangs_is_ended_with_all_it_started(
    findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, mark = tmp_path / "bin", tmp_path / "pid"
    folder.mkdir()
    script(folder / "ssh", f"[ $1 = -V ] && echo OpenSSH_9.2 && exit; sleep 60 & echo $! > {mark}; wait")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    began = time.monotonic()
    found = findings(board("desk", host="desk"), seconds=1)["reach", "board desk"]
    assert time.monotonic() - began < 8
    assert found.says == "no answer within 1 s"
    sleeper = Path(f"/proc/{mark.read_text().strip()}/cmdline")
    deadline = time.monotonic() + 5
    while sleeper.exists() and sleeper.read_bytes() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not (sleeper.exists() and sleeper.read_bytes())


@needs_sshd
def test_many_boards_that_do_not_answer_take_as_long_as_one(findings) -> None:
    """Takes some seconds: it starts an ssh for each of a hundred boards."""
    count, limit = 100, 3.0
    with socket.create_server(("127.0.0.1", 0), backlog=count + 10) as silent:
        port = silent.getsockname()[1]
        text = "".join(board(f"b{number}", host="127.0.0.1", port=port) for number in range(count))
        began = time.monotonic()
        found = findings(text, seconds=limit)
        took = time.monotonic() - began
    assert (
        sum(one.severity is Severity.PROBLEM for (what, _), one in found.items() if what == "reach") == count
    )
    assert took < 10 * limit  # one after the other: 300 s


@needs_adb
def test_boards_over_adb(findings, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        running_adb_server(monkeypatch, devices={"A1": "device", "B2": "unauthorized"}) as server,
    ):
        port = there.getsockname()[1]
        found = findings(
            board("good", serial="A1")
            + board("strange", serial="B2")
            + board("gone", serial="C3")
            + board("net", serial=f"127.0.0.1:{port}")
            + board("off", serial=f"127.0.0.1:{free_port()}")
        )
        assert set(server.asked) <= {"host:version", "host:devices"}, "nothing is done to a board"
    severities = {where.split()[1]: one.severity for (what, where), one in found.items() if what == "reach"}
    assert {name: str(severity) for name, severity in severities.items()} == {
        "good": "ok",
        "strange": "problem",
        "gone": "problem",
        "net": "ok",
        "off": "problem",
    }
    assert "does not trust this host yet" in found["reach", "board strange"].says
    assert str(found["reach", "board gone"].mend).endswith('[[board]] "gone", key "serial"')


@needs_adb
def test_connected_boards(findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_rknpu.toolchain.toolkit_status", lambda: ToolkitStatus("2.5.0", ""))
    with (
        socket.create_server(("127.0.0.1", 0)) as there,
        running_adb_server(monkeypatch, devices={"A1": "device", "B2": "device"}),
    ):
        address = f"127.0.0.1:{there.getsockname()[1]}"
        found = findings(
            board("good", runtime="connected", device_id="A1")
            + board("which", runtime="connected")
            + board("net", runtime="connected", device_id=address)
        )
    assert found["reach", "board good"].severity is Severity.OK
    assert "set device_id in boards.toml" in found["reach", "board which"].says
    assert found["reach", "board net"].mend == f"adb connect {address}"


def test_no_program_to_reach_boards_by(findings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("pytest_rknpu.transport.adb._toolkit_folders", list)
    monkeypatch.delenv("RKNPU_LABGRID_PYTHON", raising=False)
    text = EMULATED + "".join(board(f"s{n}", host="192.0.2.7") for n in range(5)) + board("a", serial="A1")
    found = findings(text + board("place", place="shelf"))
    for what, mend in (
        ("ssh", "apt-get install openssh-client"),
        ("adb", "apt-get install adb"),
        ("labgrid", "pipx install 'labgrid>=25'"),
    ):
        assert (found[what, HOST].severity, found[what, HOST].mend) == (Severity.PROBLEM, mend)
    assert found["ssh", HOST].says.endswith("s0, s1, s2 and 3 more need it")
    assert found["board", "board s4"].mend == "apt-get install openssh-client"
    for what in ("ssh", "adb", "labgrid"):
        assert findings(EMULATED)[what, HOST].severity is Severity.NOTE


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(stat.S_IRWXU)
    return str(path)


@pytest.mark.parametrize(
    ("says", "severity"),
    [("echo 25.0.1", "ok"), ("echo 24.0", "problem"), ("exit 1", "problem"), (None, "problem")],
)
def test_places_of_a_farm(
    findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, severity: str
) -> None:
    python = script(tmp_path / "python", says) if says else str(tmp_path / "none")
    monkeypatch.setenv("RKNPU_LABGRID_PYTHON", python)
    with socket.create_server(("127.0.0.1", 0)) as there:
        address, closed = f"127.0.0.1:{there.getsockname()[1]}", f"127.0.0.1:{free_port()}"
        places = "".join(board(f"p{n}", place="shelf", coordinator=address) for n in range(2))
        found = findings(places + board("q", place="other", coordinator=closed))
    assert str(found["labgrid", HOST].severity) == severity
    assert found["reach", f"labgrid coordinator {address}"].severity is Severity.OK
    assert found["reach", f"labgrid coordinator {closed}"].severity is Severity.PROBLEM
    assert "labgrid-coordinator" in str(found["reach", f"labgrid coordinator {closed}"].mend)


def test_this_machine_as_a_board(findings) -> None:
    if os.path.exists("/proc/device-tree/compatible"):
        pytest.skip("this machine has a device tree, and may be a board")
    found = findings(board("here", runtime="librknnrt", transport="local"))["board", "board here"]
    assert found.severity is Severity.PROBLEM
    assert str(found.mend).startswith("run it on a rk3588 board, or edit ")
