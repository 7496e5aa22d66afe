"""Leases, with other processes: exclusive, freed by a death, for several users, and talkative."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_rknpu.errors import ConfigurationError, LeaseLost, LeaseTimeout
from pytest_rknpu.farm.lease import Holder, holder_of, lease, lease_folder, this_process

HOLD = """
import os, sys
from pytest_rknpu.farm.lease import lease, this_process
if len(sys.argv) > 2:
    os.umask(0o077)
    os.setuid(int(sys.argv[2]))
with lease({"b1": sys.argv[1]}, this_process("run-1", "pytest suites"), wait_s=0, tell=print):
    print("held", flush=True)
    sys.stdin.read()
"""
ME = Holder("me", "here", 1, "2026-01-01T00:00:00+00:00", "run-2", "pytest")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lease folder of this test's own."""
    monkeypatch.setenv("RKNPU_LEASE_DIR", str(tmp_path / "farm" / "leases"))
    return tmp_path / "farm" / "leases"


@contextmanager
def held_elsewhere(key: str, *user: str) -> Iterator[subprocess.Popen[str]]:
    """Another process holds ``key``, as another user if one is given."""
    command = [sys.executable, "-c", HOLD, key, *user]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        yield holder
    finally:
        holder.communicate(timeout=20)


def take(key: str, wait_s: float = 0.0) -> list[str]:
    """Take and return a lease; what was said meanwhile."""
    said: list[str] = []
    with lease({"b1": key}, ME, wait_s=wait_s, tell=said.append):
        assert holder_of(key) == ME
    return said


def test_a_free_board_is_had_at_once_and_silently() -> None:
    assert take("ssh:host:22") == []
    assert holder_of("ssh:host:22") is None


def test_a_held_board_is_refused_with_its_holder() -> None:
    with held_elsewhere("key") as holder:
        said: list[str] = []
        with pytest.raises(LeaseTimeout) as refused, lease({"b1": "key"}, ME, wait_s=0.2, tell=said.append):
            pytest.fail("two holders")
    assert len(said) == 1
    for text in (said[0], str(refused.value)):
        assert f"process {holder.pid}" in text
        assert "run run-1: pytest suites" in text
    assert "--rknpu-wait" in str(refused.value)


def test_other_boards_are_not_touched_by_it() -> None:
    with held_elsewhere("key"):
        assert take("other key") == []


def test_of_several_boards_the_first_free_one_is_had() -> None:
    keys = {"b1": "key", "b2": "key 2", "b3": "key 3"}
    with held_elsewhere("key"):
        with lease(keys, ME, wait_s=0, tell=print) as two, lease(keys, ME, wait_s=0, tell=print) as three:
            assert (two.board, three.board) == ("b2", "b3")
            with (
                pytest.raises(LeaseTimeout, match=r"(?s)board b1: .*board b2: .*board b3: "),
                lease(keys, ME, wait_s=0, tell=print),
            ):
                pytest.fail("four of three")
        assert take("key 2") == []


def test_a_board_that_the_own_run_holds_is_waited_for_without_limit() -> None:
    said: list[str] = []
    ours = replace(ME, run_id="run-1")
    with held_elsewhere("key") as holder:

        def let_go() -> None:
            threading.Event().wait(1.0)
            holder.stdin.close()

        releaser = threading.Thread(target=let_go)
        releaser.start()
        with lease({"b1": "key"}, ours, wait_s=0.2, tell=said.append):
            releaser.join()
        holder.stdin = None  # closed already
    assert len(said) == 1


def test_a_lock_that_was_removed_is_a_lost_lease(folder: Path) -> None:
    with lease({"b1": "key"}, ME, wait_s=0, tell=print) as held:
        held.check()
        next(folder.glob("*.lock")).unlink()
        with pytest.raises(LeaseLost, match="board b1: the lease was lost: somebody removed"):
            held.check()
        with lease({"b1": "key"}, ME, wait_s=0, tell=print), pytest.raises(LeaseLost):
            held.check()  # another file of that name


def test_waiting_ends_when_the_holder_goes() -> None:
    with held_elsewhere("key") as holder:
        assert holder.stdin is not None
        said: list[str] = []

        def let_go(text: str) -> None:
            said.append(text)
            holder.stdin.close()

        with lease({"b1": "key"}, ME, wait_s=20, tell=let_go):
            assert holder_of("key") == ME
        holder.stdin = None  # closed already
    assert len(said) == 1


def test_a_killed_holder_frees_the_board_although_its_name_stays() -> None:
    with held_elsewhere("key") as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=20)
        assert holder_of("key") is not None
        assert take("key") == []
    assert holder_of("key") is None


def test_an_exception_frees_the_board() -> None:
    with pytest.raises(ZeroDivisionError), lease({"b1": "key"}, ME, wait_s=0, tell=print):
        _ = 1 / 0
    assert take("key") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two other users")
def test_users_share_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (str(pwd.getpwnam(name).pw_uid) for name in ("daemon", "nobody"))
    with tempfile.TemporaryDirectory(dir="/tmp") as base:
        Path(base).chmod(0o755)
        monkeypatch.setenv("RKNPU_LEASE_DIR", f"{base}/leases")
        lease_folder()
        with held_elsewhere("key", first) as holder:
            command = [sys.executable, "-c", HOLD, "key", second]
            refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert "LeaseTimeout: board b1: still held after 0 s by " in refused.stderr
            assert f"process {holder.pid}" in refused.stderr
        for user in (second, first, str(os.getuid())):
            with held_elsewhere("key", user) as holder:
                named = holder_of("key")
                assert named is not None
                assert named.pid == holder.pid  # each could write itself down


def test_keys_that_look_alike_are_not_one_board(folder: Path) -> None:
    alike = ["emulator:/a/b.toml:x", "emulator:/a_b.toml:x", "x" * 300 + "1", "x" * 300 + "2", "../../x"]
    for key in alike:
        take(key)
    locks = list(folder.glob("*.lock"))
    assert len(locks) == len(alike)
    assert all(lock.resolve().parent == folder.resolve() for lock in locks)


@pytest.mark.parametrize("text", ["", "{}", "[]", "{torn", '{"user": 1}', "\x00" * 20, '"x"', "[" * 10_000])
def test_a_broken_name_of_a_holder_is_no_obstacle(folder: Path, text: str) -> None:
    with held_elsewhere("key"):
        next(folder.glob("*.json")).write_text(text)
        with pytest.raises(LeaseTimeout, match="somebody who left no name"):
            take("key")


def test_a_name_cannot_paint_the_terminal(folder: Path) -> None:
    with held_elsewhere("key"):
        path = next(folder.glob("*.json"))
        path.write_text(path.read_text().replace("pytest suites", "\\u001b[31m\\nred"))
        shown = str(holder_of("key"))
    assert "\x1b" not in shown
    assert "\n" not in shown


def test_a_link_in_place_of_a_name_is_not_followed(folder: Path, tmp_path: Path) -> None:
    take("key")
    name, precious = next(folder.glob("*.json")), tmp_path / "precious"
    precious.write_text("whole")
    name.unlink()
    name.symlink_to(precious)
    with lease({"b1": "key"}, ME, wait_s=0, tell=print):
        pass
    assert precious.read_text() == "whole"


def test_an_unusable_folder_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    for path in (occupied, occupied / "below"):
        monkeypatch.setenv("RKNPU_LEASE_DIR", str(path))
        with pytest.raises(ConfigurationError, match="RKNPU_LEASE_DIR"):
            lease_folder()


def test_the_default_folder_is_the_same_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RKNPU_LEASE_DIR")
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert lease_folder() == Path("/tmp/pytest-rknpu-leases")


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)

    def nobody_known(_: int) -> object:
        raise KeyError("uid not found")

    monkeypatch.setattr(pwd, "getpwuid", nobody_known)
    assert this_process("r", "c").user == f"uid {os.getuid()}"
