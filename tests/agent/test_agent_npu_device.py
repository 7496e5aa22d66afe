"""The NPU's node: found by its driver, opened or refused with the remedy, and who else has it open."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.agent import npu_device, processes
from pytest_rknpu.agent.readers import Absent, Blocked, Root

UEVENT = "DRIVER=RKNPU\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu\n"


def write(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def board(root: Path) -> Root:
    for name in ("card1", "renderD129"):
        write(root, f"sys/class/drm/{name}/device/uevent", UEVENT)
        write(root, f"dev/dri/{name}")
    return Root(str(root))


def refuse(monkeypatch: pytest.MonkeyPatch, number: int, *names: str) -> None:
    really = os.open

    def guarded(path: Any, *arguments: Any, **keys: Any) -> int:
        if os.path.basename(str(path)) in names:
            raise OSError(number, os.strerror(number), path)
        return really(path, *arguments, **keys)

    monkeypatch.setattr(os, "open", guarded)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EPERM, "start it with --device /dev/dri/renderD129"),
        (errno.ENOENT, "a container without --device /dev/dri/renderD129"),
        (errno.ENODEV, "No such device"),
    ],
)
def test_every_refusal_has_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    root = board(tmp_path)
    refuse(monkeypatch, number, "renderD129", "card1")
    with pytest.raises(Blocked, match=words):
        npu_device.access(root)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("render", r"renderD129 \(-rw-r--r-- .*:render\): Permission denied; .*usermod -aG render USER"),
        ("root", r'only root may: .*"drm", KERNEL=="renderD\*", DRIVERS=="RKNPU\|rknpu", GROUP="render"'),
        (None, "only root may"),
    ],
)
def test_the_group_that_may_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str | None, words: str
) -> None:
    root = board(tmp_path)
    monkeypatch.setattr(npu_device, "_group", lambda path: group)
    refuse(monkeypatch, errno.EACCES, "renderD129", "card1")
    with pytest.raises(Blocked, match=words):
        npu_device.access(root)


def test_the_rule_for_a_misc_device_matches_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It named the subsystem drm, in which /dev/rknpu is not."""
    write(tmp_path, "sys/class/misc/rknpu/uevent", "DEVNAME=rknpu\n")
    write(tmp_path, "dev/rknpu")
    monkeypatch.setattr(npu_device, "_group", lambda path: "root")
    refuse(monkeypatch, errno.EACCES, "rknpu")
    with pytest.raises(Blocked, match='SUBSYSTEM=="misc", KERNEL=="rknpu", GROUP="render"'):
        npu_device.access(Root(str(tmp_path)))


def test_one_node_is_enough_and_the_other_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = board(tmp_path)
    refuse(monkeypatch, errno.EACCES, "card1")
    found = npu_device.access(root)
    assert found["node"] == "/dev/dri/renderD129"
    assert "/dev/dri/card1" in found["refused"][0]


def test_a_misc_device_that_only_sysfs_knows_is_one(tmp_path: Path) -> None:
    """As in a container that was not given the node."""
    write(tmp_path, "sys/class/misc/rknpu/uevent", "DEVNAME=rknpu\n")
    root = Root(str(tmp_path))
    assert npu_device.find(root)["nodes"] == ["/dev/rknpu"]
    with pytest.raises(Blocked, match="its node is not"):
        npu_device.access(root)


def test_where_sysfs_is_masked_the_nodes_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drivers = {"card0": b"rockchip", "card1": b"rknpu", "renderD128": b"rockchip", "renderD129": b"RKNPU"}
    for name in drivers:
        write(tmp_path, f"dev/dri/{name}")
    root = Root(str(tmp_path))
    monkeypatch.setattr(root, "is_live", True)
    asked: list[int] = []

    def ioctl(descriptor: int, request: int, version: Any) -> int:
        asked.append(request)
        name = drivers[os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))]
        ctypes.memmove(version.name, name, len(name))
        version.name_length = len(name)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    assert npu_device.find(root)["nodes"] == ["/dev/dri/renderD129", "/dev/dri/card1"]
    # _IOWR('d', 0, struct drm_version) of a 64-bit kernel (drm.h)
    assert set(asked) == {0xC0406400 if ctypes.sizeof(ctypes.c_void_p) == 8 else 0xC0246400}


def test_nodes_that_do_not_answer_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "dev/dri/card0")  # a plain file knows no ioctl
    root = Root(str(tmp_path))
    monkeypatch.setattr(root, "is_live", True)
    with pytest.raises(Absent, match="none of 0 DRM devices"):
        npu_device.find(root)


def test_a_live_file_that_is_no_device_is_no_misc_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "dev/rknpu")
    root = Root(str(tmp_path))
    monkeypatch.setattr(root, "is_live", True)
    with pytest.raises(Absent):
        npu_device.find(root)
    real = os.stat("/dev/null")
    assert stat.S_ISCHR(real.st_mode)
    (tmp_path / "dev/rknpu").unlink()
    os.mkfifo(tmp_path / "dev/rknpu")  # opening a pipe must not wait for its other end
    monkeypatch.setattr(root, "is_live", False)
    assert npu_device.access(root)["node"] == "/dev/rknpu"


def process(root: Path, pid: int, name: str, *targets: str) -> None:
    """A process as /proc shows it."""
    write(root, f"proc/{pid}/comm", name + "\n")
    (root / f"proc/{pid}/fd").mkdir()
    for number, target in enumerate(targets):
        (root / f"proc/{pid}/fd/{number}").symlink_to(target)


def test_who_has_the_npu_open(tmp_path: Path) -> None:
    process(tmp_path, 7, "init", "/dev/null")
    process(tmp_path, 812, "frigate", "/dev/null", "/dev/dri/renderD129")
    process(tmp_path, 90, "Xorg", "/dev/dri/card0")
    write(tmp_path, "proc/99/comm", "gone\n")  # has ended: no fd
    (tmp_path / "proc/self").symlink_to("7")
    root = Root(str(tmp_path))
    assert processes.users_of(root, ["/dev/dri/renderD129"]) == [{"pid": 812, "name": "frigate"}]
    assert processes.users_of(root, ["/dev/rknpu"]) == []


def test_nobody_found_among_hidden_processes_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(tmp_path, 7, "init", "/dev/null")
    process(tmp_path, 8, "other", "/dev/dri/renderD129")
    root = Root(str(tmp_path))
    really = os.listdir

    def shut(path: Any) -> list[str]:
        if str(path).endswith("8/fd"):
            raise PermissionError(13, "Permission denied", path)
        return really(path)

    monkeypatch.setattr(os, "listdir", shut)
    with pytest.raises(Blocked, match="1 processes of other users"):
        processes.users_of(root, ["/dev/dri/renderD129"])


def test_a_running_program_is_found_by_its_name(tmp_path: Path) -> None:
    process(tmp_path, 20, "rknn_server")
    process(tmp_path, 3, "sh")
    root = Root(str(tmp_path))
    assert processes.running(root, "rknn_server") == 20
    assert processes.running(root, "adbd") is None
    assert processes.running(Root(str(tmp_path / "nowhere")), "adbd") is None


def test_a_server_that_runs_from_elsewhere_tells_its_version(tmp_path: Path) -> None:
    from pytest_rknpu.agent.probe import probe

    process(tmp_path, 20, "rknn_server")
    write(tmp_path, "userdata/server", "rknn_server version: 2.3.0 (e80ac5c build@2024-11-07T12:52:53)")
    (tmp_path / "proc/20/exe").symlink_to(tmp_path / "userdata/server")
    found = probe(str(tmp_path), {})["rknn_server"]["value"]
    assert (found["path"], found["version"], found["pid"]) == ("/proc/20/exe", "2.3.0", 20)
