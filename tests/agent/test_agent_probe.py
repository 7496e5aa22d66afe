"""The probe on synthetic boards: each fact is a value, absent or blocked, and says why."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_rknpu.agent.probe import probe
from pytest_rknpu.agent.readers import Blocked, Root

SOFTWARE = {"kind": "python", "entry": "x:y", "options": {}}

ORANGE_PI = {
    "proc/device-tree/compatible": b"rockchip,rk3588-orangepi-5-plus\0rockchip,rk3588\0",
    "proc/device-tree/model": b"Orange Pi 5 Plus\0",
    "proc/sys/kernel/osrelease": b"6.1.43-rockchip-rk3588\n",
    "proc/version": b"Linux version 6.1.43-rockchip-rk3588 (root@builder) #1.2.0 SMP\n",
    "proc/cmdline": b"root=UUID=1 isolcpus=4-7\n",
    "etc/os-release": b'NAME="Orange Pi"\nVERSION_ID="1.2"\n',
    "etc/orangepi-release": b"BOARD=orangepi5plus\nVERSION=1.2.0\n",
    "etc/debian_version": b"12.5\n",
    "etc/radxa_image_fingerprint": b"FINGERPRINT='x'\n",
    "sys/class/drm/card0/device/uevent": b"DRIVER=rockchip-drm\n",
    "sys/class/drm/card1/device/uevent": b"DRIVER=RKNPU\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu\n",
    "sys/class/drm/renderD128/device/uevent": b"DRIVER=panthor\n",
    "sys/class/drm/renderD129/device/uevent": b"DRIVER=RKNPU\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu\n",
    "dev/dri/card1": b"",
    "dev/dri/renderD129": b"",
    "sys/kernel/debug/rknpu/version": b"RKNPU driver: v0.9.8\n",
    "sys/module/rknpu/version": b"0.9.6\n",
    "sys/kernel/debug/rknpu/load": b"NPU load:  Core0: 63%, Core1: 65%, Core2: 64%,\n",
    "sys/class/devfreq/fdab0000.npu/governor": b"rknpu_ondemand\n",
    "sys/class/devfreq/fdab0000.npu/available_governors": b"rknpu_ondemand userspace\n",
    "sys/class/devfreq/fdab0000.npu/available_frequencies": b"300000000 1000000000\n",
    "sys/class/devfreq/fdab0000.npu/cur_freq": b"1000000000\n",
    "sys/class/devfreq/dmc/cur_freq": b"2112000000\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": b"ondemand\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": b"1800000\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_available_frequencies": b"408000 2256000\n",
    "sys/class/thermal/thermal_zone0/type": b"soc-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": b"45307\n",
    "sys/class/thermal/thermal_zone6/type": b"npu-thermal\n",
    "sys/class/thermal/thermal_zone6/temp": b"-1000\n",
    "dev/kmsg": b"6,1,0,-;RKNPU fdab0000.npu: rknpu iommu is enabled, using iommu mode\n6,2,1,-;usb 1-1\n",
    "usr/bin/rknn_server": b"..rknn_server version: 2.3.2 (1842325 build@2025-03-30T09:54:34)\0",
}


def make(root: Path, files: dict[str, bytes]) -> str:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(root)


def values(facts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: entry["value"] for name, entry in facts.items() if "value" in entry}


def test_a_board_with_everything(tmp_path: Path) -> None:
    found = values(probe(make(tmp_path, ORANGE_PI), SOFTWARE))
    assert found["device_tree_compatible"] == ["rockchip,rk3588-orangepi-5-plus", "rockchip,rk3588"]
    assert found["device_tree_model"] == "Orange Pi 5 Plus"
    assert found["os_release"]["NAME"] == "Orange Pi"
    assert set(found["vendor_release"]) == {"orangepi-release", "radxa_image_fingerprint"}
    assert found["kernel"]["release"] == "6.1.43-rockchip-rk3588"
    assert found["command_line"] == "root=UUID=1 isolcpus=4-7"
    assert found["driver_version"] == {
        "version": "0.9.8",
        "source": "/sys/kernel/debug/rknpu/version",
        "date": None,
    }
    assert found["npu_device"] == {
        "driver": "RKNPU",
        "compatible": "rockchip,rk3588-rknpu",
        "nodes": ["/dev/dri/renderD129", "/dev/dri/card1"],
        "iommu": None,
    }
    assert found["npu_access"] == {"node": "/dev/dri/renderD129", "refused": []}
    assert found["npu_users"] == []
    assert found["debugfs"] == "/sys/kernel/debug/rknpu"
    assert found["npu_load"] == [63, 65, 64]
    assert found["npu_clock"] == {
        "node": "fdab0000.npu",
        "governor": "rknpu_ondemand",
        "governors": ["rknpu_ondemand", "userspace"],
        "hertz": 1_000_000_000,
        "available_hertz": [300_000_000, 1_000_000_000],
        "load": None,
        "transitions": None,
    }
    assert found["ddr_clock"]["hertz"] == 2_112_000_000
    assert found["cpu_clocks"]["policy0"]["hertz"] == 1_800_000_000
    assert found["cpu_clocks"]["policy4"]["available_hertz"] == [408_000_000, 2_256_000_000]
    assert [zone["type"] for zone in found["thermal"]] == ["soc-thermal", "npu-thermal"]
    assert [zone["millidegrees"] for zone in found["thermal"]] == [45307, -1000]
    assert found["npu_iommu"] == "enabled"
    (message,) = found["npu_kernel_log"]
    assert message["text"] == "RKNPU fdab0000.npu: rknpu iommu is enabled, using iommu mode"
    assert (message["sequence"], message["level"]) == (1, 6)
    assert found["rknn_server"]["version"] == "2.3.2"
    assert found["rknn_server"]["pid"] is None


def test_a_board_with_nothing_says_why_for_every_fact(tmp_path: Path) -> None:
    facts = probe(str(tmp_path), SOFTWARE)
    of_the_process = {"machine", "python", "user"}
    assert set(values(facts)) == of_the_process
    assert all(entry["absent"] for name, entry in facts.items() if name not in of_the_process)
    assert "container" in facts["device_tree_compatible"]["absent"]
    assert "none of 0 DRM devices" in facts["npu_device"]["absent"]


@pytest.mark.parametrize(
    ("files", "version", "source"),
    [
        ({"sys/module/rknpu/version": b"0.9.6\n"}, "0.9.6", "/sys/module/rknpu/version"),
        (
            {"sys/kernel/debug/rknpu/version": b"?\n", "sys/module/rknpu/version": b"0.9.6\n"},
            "0.9.6",
            "/sys/module/rknpu/version",
        ),
        ({"proc/rknpu/version": b"RKNPU driver: v0.8.2\n"}, "0.8.2", "/proc/rknpu/version"),
        (
            {"dev/kmsg": b"6,3,2,-;[drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1\n"},
            "0.9.8",
            "kernel log",
        ),
        ({"var/log/dmesg": b"RKNPU ff660000.npu: Initialized RKNPU driver: v0.8.2\n"}, "0.8.2", "kernel log"),
        ({"sys/kernel/debug/rknpu/version": b"RKNPU driver: emulated 0.9.8"}, "emulated 0.9.8", None),
    ],
)
def test_the_driver_version_comes_from_where_it_is(
    tmp_path: Path, files: dict[str, bytes], version: str, source: str | None
) -> None:
    found = values(probe(make(tmp_path, files), SOFTWARE))["driver_version"]
    assert found["version"] == version
    assert source in (found["source"], None)


def test_a_misc_device_is_the_npu_and_a_symbolic_link_is_not(tmp_path: Path) -> None:
    make(tmp_path, {"dev/real": b""})
    (tmp_path / "dev/rknpu").symlink_to("real")
    assert "absent" in probe(str(tmp_path), SOFTWARE)["npu_device"]
    (tmp_path / "dev/rknpu").unlink()
    make(tmp_path, {"dev/rknpu": b""})
    assert values(probe(str(tmp_path), SOFTWARE))["npu_device"]["nodes"] == ["/dev/rknpu"]


def test_a_link_named_like_a_node_is_not_followed_by_name(tmp_path: Path) -> None:
    # renderD128 is somebody else's, whatever its name promises.
    make(
        tmp_path, {"sys/class/drm/renderD128/device/uevent": b"DRIVER=panfrost\n", "dev/dri/renderD128": b""}
    )
    assert "none of 1 DRM devices" in probe(str(tmp_path), SOFTWARE)["npu_device"]["absent"]


def test_mainlines_driver_is_named_as_another_stack(tmp_path: Path) -> None:
    make(tmp_path, {"sys/class/accel/accel0/device/uevent": b"DRIVER=rocket\n"})
    facts = probe(str(tmp_path), SOFTWARE)
    assert facts["other_npu_driver"]["value"] == {"driver": "rocket", "nodes": ["/dev/accel/accel0"]}
    assert "another stack" in facts["npu_device"]["absent"]


def test_presence_is_not_use(tmp_path: Path) -> None:
    files = dict(ORANGE_PI)
    del files["dev/dri/renderD129"], files["dev/dri/card1"]
    fact = probe(make(tmp_path, files), SOFTWARE)["npu_access"]
    assert "/dev/dri/renderD129: No such file" in fact["blocked"]
    assert "/dev/dri/card1" in fact["blocked"]


def refuse(monkeypatch: pytest.MonkeyPatch, *parts: str) -> None:
    """Opening a path with one of these parts is refused, as it is to a user without the right."""
    really = os.open

    def guarded(path: Any, *arguments: Any, **keys: Any) -> int:
        if any(part in str(path) for part in parts):
            raise PermissionError(13, "Permission denied", path)
        return really(path, *arguments, **keys)

    monkeypatch.setattr(os, "open", guarded)


def test_what_this_user_may_not_see_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "sys/kernel/debug", "dev/kmsg", "dev/dri")
    root = make(tmp_path, {name: data for name, data in ORANGE_PI.items() if "module" not in name})
    facts = probe(root, SOFTWARE)
    assert "/sys/kernel/debug/rknpu/load: Permission denied" in facts["npu_load"]["blocked"]
    assert "/dev/kmsg: Permission denied" in facts["driver_version"]["blocked"]
    assert "Permission denied" in facts["npu_iommu"]["blocked"]
    assert "(-rw-r--r-- " in facts["npu_access"]["blocked"]
    assert "render or video" in facts["npu_access"]["blocked"]
    assert "debugfs is root's" in facts["npu_load"]["blocked"]


def test_the_module_tells_the_version_where_debugfs_is_shut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, "sys/kernel/debug")
    found = values(probe(make(tmp_path, ORANGE_PI), SOFTWARE))["driver_version"]
    assert (found["version"], found["source"]) == ("0.9.6", "/sys/module/rknpu/version")


def test_the_runtime_library_is_checked_before_it_is_read(tmp_path: Path, fake_runtime: str) -> None:
    with_version = tmp_path / "librknnrt.so"
    tail = b"\0librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)\0"
    with_version.write_bytes(Path(fake_runtime).read_bytes() + tail)
    library = {"kind": "shared-object", "path": str(with_version)}
    found = probe(str(tmp_path), library)["runtime_library"]["value"]
    assert (found["version"], found["path"]) == ("2.3.2", str(with_version))
    with_version.write_bytes(b"<html>")
    assert "invalid ELF header" in probe(str(tmp_path), library)["runtime_library"]["blocked"]
    without = {"kind": "shared-object", "path": fake_runtime}
    assert probe(str(tmp_path), without)["runtime_library"]["value"]["version"] is None
    nowhere = {"kind": "shared-object", "path": "librknnrt-nowhere.so"}
    assert "usual library folders" in probe(str(tmp_path), nowhere)["runtime_library"]["absent"]


def test_one_odd_file_does_not_cost_the_other_facts(tmp_path: Path) -> None:
    (tmp_path / "etc/os-release").mkdir(parents=True)
    make(tmp_path, {"proc/cmdline": b"\xff\xfe\0"})
    facts = probe(str(tmp_path), SOFTWARE)
    assert "directory" in facts["os_release"]["blocked"]
    assert "value" in facts["command_line"]


def test_this_machine_can_be_probed() -> None:
    facts = probe("/", {"kind": "shared-object", "path": "librknnrt.so"})
    assert all(set(entry) <= {"value", "absent", "blocked"} and len(entry) == 1 for entry in facts.values())
    assert facts["kernel"]["value"]["release"] == os.uname().release


def test_a_folder_that_cannot_be_listed_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", shut)
    with pytest.raises(Blocked, match="Permission denied"):
        Root(str(tmp_path)).names("sys/class/drm", "card*")


def test_the_table_in_the_text_names_every_fact(tmp_path: Path) -> None:
    from pytest_rknpu.agent import probe as module

    names = re.findall(r"^([a-z][a-z_, ]*?)  ", module.__doc__ or "", re.MULTILINE)
    listed = [name for entry in names for name in entry.split(", ")]
    assert [name for name in listed if name != "name"] == list(probe(str(tmp_path), SOFTWARE))
