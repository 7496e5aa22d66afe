"""Fake boards: the files by which images of real ones can be told, for each SoC and flavour of BSP.

Texts are those of field reports. A folder made by ``lay`` stands for ``/``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEBUGFS = "sys/kernel/debug/rknpu"


def elf(bits: int, machine: int) -> bytes:
    """The head of an ELF file: 64, 183 is aarch64; 32, 40 is arm."""
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, machine, 1) + bytes(40)


AARCH64, ARM = elf(64, 183), elf(32, 40)


def runtime(head: bytes, version: str, name: str = "librknnrt") -> bytes:
    """A runtime library, as far as a probe reads it: also the format that it prints its version with."""
    return head + f"{name} version: %s\0{name} version: {version}\0".encode()


def drm(number: int, driver: str, compatible: str, *, render: bool = True) -> dict[str, str | bytes]:
    """A DRM card with its render node, as the kernel numbers them."""
    uevent = f"DRIVER={driver}\nOF_NAME=npu\nOF_COMPATIBLE_0={compatible}\nOF_COMPATIBLE_N=1\n"
    names = [f"card{number}", *([f"renderD{128 + number}"] if render else [])]
    files: dict[str, str | bytes] = {f"sys/class/drm/{name}/device/uevent": uevent for name in names}
    return files | {f"dev/dri/{name}": "" for name in names}


def npu_files(version: str, load: str) -> dict[str, str | bytes]:
    """What the driver shows in debugfs, and as a module."""
    return {
        f"{DEBUGFS}/version": f"RKNPU driver: v{version}\n",
        f"{DEBUGFS}/load": load,
        "sys/module/rknpu/version": f"{version}\n",
    }


@dataclass(frozen=True)
class Image:
    """``soc`` as boards.toml names it; ``shut``: parts of paths that this user may not open.

    Expected: ``bsp``, ``kernel``, ``driver``, ``nodes``, ``library`` as recorded, ``missing`` by its words.
    """

    soc: str
    files: Mapping[str, str | bytes]
    bsp: str
    kernel: str
    driver: str
    nodes: tuple[str, ...]
    library: str
    library_name: str = "librknnrt.so"
    links: Mapping[str, str] = field(default_factory=dict)
    shut: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()

    def lay(self, root: Path) -> str:
        """Write the image below ``root``."""
        for path, content in self.files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        for path, target_path in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target_path)
        return str(root)


def tree(*entries: str, model: str) -> dict[str, str | bytes]:
    """The device tree's root node."""
    return {
        "proc/device-tree/compatible": "".join(entry + "\0" for entry in entries),
        "proc/device-tree/model": model + "\0",
    }


def debian(version: str = "12 (bookworm)") -> dict[str, str | bytes]:
    """os-release of Debian."""
    return {
        "etc/os-release": f'PRETTY_NAME="Debian GNU/Linux {version}"\nNAME="Debian GNU/Linux"\nID=debian\n'
    }


PYTHON_64 = {"proc/self/exe": AARCH64}
PYTHON_32 = {"proc/self/exe": ARM}
LOG = "6,1,0,-;RKNPU {}: rknpu iommu is enabled, using iommu mode\n"
THREE_IDLE = "NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,\n"

IMAGES: Mapping[str, Image] = {
    "radxa-debian-rk3588": Image(
        soc="rk3588",
        files={
            **PYTHON_64,
            **tree("radxa,rock-5b", "rockchip,rk3588", model="Radxa ROCK 5B"),
            **debian("11 (bullseye)"),
            "etc/radxa_image_fingerprint": "FINGERPRINT_VERSION='1'\nRBUILD_BUILD_DATE='Fri, 08 Dec 2023'\n",
            "proc/sys/kernel/osrelease": "5.10.110-50-rockchip-g5db04e2aa688\n",
            **drm(0, "rockchip-drm", "rockchip,display-subsystem", render=False),
            **drm(1, "RKNPU", "rockchip,rk3588-rknpu"),
            **npu_files("0.8.2", "NPU load:  Core0: 63%, Core1: 65%, Core2: 64%,\n"),
            "dev/kmsg": LOG.format("fdab0000.npu"),
            "usr/lib/librknnrt.so": runtime(AARCH64, "1.5.2 (c6b7b351a@2023-08-23T15:28:22)"),
            "usr/lib/python3/dist-packages/rknn_toolkit_lite2-1.5.2.dist-info/METADATA": "",
        },
        bsp="Debian GNU/Linux 11 (bullseye)",
        kernel="5.10.110-50-rockchip-g5db04e2aa688",
        driver="0.8.2",
        nodes=("/dev/dri/renderD129", "/dev/dri/card1"),
        library="librknnrt version: 1.5.2 (c6b7b351a@2023-08-23T15:28:22)",
    ),
    "orangepi-ubuntu-rk3588s": Image(
        soc="rk3588",
        files={
            **PYTHON_64,
            **tree("rockchip,rk3588s-orangepi-5", "rockchip,rk3588s", model="Orange Pi 5"),
            "etc/os-release": 'PRETTY_NAME="Orange Pi 1.1.8 Jammy"\nID=ubuntu\n',
            "etc/orangepi-release": "BOARD=orangepi5\nVERSION=1.1.8\n",
            "proc/sys/kernel/osrelease": "6.1.43-rockchip-rk3588\n",
            # The NPU came first here: card0 and renderD128 are its own, the display's are the second.
            **drm(0, "RKNPU", "rockchip,rk3588-rknpu"),
            **drm(1, "rockchip-drm", "rockchip,display-subsystem"),
            "sys/module/rknpu/version": "0.9.6\n",
            f"{DEBUGFS}/load": THREE_IDLE,
            "dev/kmsg": LOG.format("fdab0000.npu"),
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
            "usr/lib/aarch64-linux-gnu/librknnrt.so": runtime(
                AARCH64, "1.6.0 (9a7b5d24c@2023-12-13T17:31:11)"
            ),
        },
        shut=("sys/kernel/debug", "dev/kmsg"),
        bsp="Orange Pi 1.1.8 Jammy",
        kernel="6.1.43-rockchip-rk3588",
        driver="0.9.6",
        nodes=("/dev/dri/renderD128", "/dev/dri/card0"),
        library="librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        missing=("debugfs", "kernel-log", "one-runtime-library", "lite2"),
    ),
    "armbian-rk3576": Image(
        soc="rk3576",
        files={
            **PYTHON_64,
            **tree("friendlyarm,nanopi-m5", "rockchip,rk3576", model="FriendlyElec NanoPi M5"),
            "etc/os-release": 'PRETTY_NAME="Armbian 25.2.1 bookworm"\nID=debian\n',
            "etc/armbian-release": "BOARD=nanopi-m5\nVERSION=25.2.1\n",
            "proc/sys/kernel/osrelease": "6.1.115-vendor-rk35xx\n",
            **drm(0, "rockchip-drm", "rockchip,display-subsystem"),
            **drm(1, "panthor", "arm,mali-valhall-csf"),
            **drm(2, "RKNPU", "rockchip,rk3576-rknpu"),
            **npu_files("0.9.8", "NPU load:  Core0:  0%, Core1:  0%,\n"),
            "dev/kmsg": "6,9,9,-,caller=T1;[drm] Initialized rknpu 0.9.8 20240828 for 27700000.npu\n",
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
        },
        shut=("dev/dri",),
        bsp="Armbian 25.2.1 bookworm",
        kernel="6.1.115-vendor-rk35xx",
        driver="0.9.8",
        nodes=("/dev/dri/renderD130", "/dev/dri/card2"),
        library="librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        missing=("npu-access", "lite2"),
        needed=("npu-access",),
    ),
    "android-rk3568": Image(
        soc="rk3568",
        files={
            **PYTHON_64,
            **tree(
                "rockchip,rk3568-evb1-ddr4-v10",
                "rockchip,rk3568",
                model="Rockchip RK3568 EVB1 DDR4 V10 Board",
            ),
            "system/build.prop": "ro.build.version.release=12\nro.build.display.id=rk3568_s-userdebug 12\n",
            "proc/sys/kernel/osrelease": "5.10.157\n",
            **drm(0, "rockchip-drm", "rockchip,display-subsystem"),
            **drm(1, "RKNPU", "rockchip,rk3568-rknpu"),
            "proc/rknpu/version": "RKNPU driver: v0.9.2\n",
            "proc/rknpu/load": "NPU load:  0%\n",
            "dev/kmsg": LOG.format("fde40000.npu"),
            "vendor/lib64/librknnrt.so": runtime(AARCH64, "1.6.0 (9a7b5d24c@2023-12-13T17:31:11)"),
            "vendor/bin/rknn_server": b"..rknn_server version: 1.6.0 (535b468 build@2023-12-11T09:05:46)\0",
        },
        bsp="Android 12 (rk3568_s-userdebug 12)",
        kernel="5.10.157",
        driver="0.9.2",
        nodes=("/dev/dri/renderD129", "/dev/dri/card1"),
        library="librknnrt version: 1.6.0 (9a7b5d24c@2023-12-13T17:31:11)",
        missing=("lite2",),
    ),
    "luckfox-buildroot-rv1106": Image(
        soc="rv1106",
        files={
            **PYTHON_32,
            **tree("rockchip,rv1106g-38x38-ipc-v10", "rockchip,rv1106", model="Luckfox Pico Max"),
            "etc/os-release": 'NAME=Buildroot\nID=buildroot\nPRETTY_NAME="Buildroot 2023.02.6"\n',
            "proc/sys/kernel/osrelease": "5.10.160\n",
            # No DRM: the driver is a misc device.
            "dev/rknpu": "",
            "sys/class/misc/rknpu/uevent": "MAJOR=10\nMINOR=125\nDEVNAME=rknpu\n",
            "dev/kmsg": "6,310,2,-;RKNPU ff660000.npu: Initialized RKNPU driver: v0.9.2 for 20231018\n",
            f"{DEBUGFS}/load": "NPU load:  0%\n",
            "oem/usr/lib/librknnmrt.so": runtime(ARM, "1.6.0 (9a7b5d24c@2023-12-13T17:30:59)", "librknnmrt"),
            "oem/usr/bin/rknn_server": b"rknn_server version: 1.3.0 (121b661 build: 2022-04-29 11:12:02)\0",
        },
        library_name="librknnmrt.so",
        bsp="Buildroot 2023.02.6",
        kernel="5.10.160",
        driver="0.9.2 20231018",
        nodes=("/dev/rknpu",),
        library="librknnmrt version: 1.6.0 (9a7b5d24c@2023-12-13T17:30:59)",
    ),
    "buildroot-rv1103": Image(
        soc="rv1103",
        files={
            **PYTHON_32,
            **tree("rockchip,rv1103g-38x38-ipc-v10", "rockchip,rv1103", model="Luckfox Pico"),
            "etc/os-release": "NAME=Buildroot\nVERSION=2023.02.6\n",
            "etc/version": "20240417\n",
            "proc/sys/kernel/osrelease": "5.10.110\n",
            "dev/rknpu": "",
            "var/log/dmesg": "[    0.42] RKNPU ff660000.npu: Initialized RKNPU driver: v0.8.2\n",
        },
        library_name="librknnmrt.so",
        bsp="Buildroot",
        kernel="5.10.110",
        driver="0.8.2",
        nodes=("/dev/rknpu",),
        library="absent",
        missing=("runtime-library", "debugfs", "kernel-log"),
        needed=("runtime-library",),
    ),
    "debian-rk3566": Image(
        soc="rk3566",
        files={
            **PYTHON_64,
            **tree("radxa,zero3w", "rockchip,rk3566", model="Radxa ZERO 3"),
            **debian(),
            "proc/sys/kernel/osrelease": "6.1.43-20-rk2312\n",
            **drm(0, "rockchip-drm", "rockchip,display-subsystem"),
            **drm(1, "RKNPU", "rockchip,rk3568-rknpu"),
            **npu_files("0.9.6", "NPU load:  0%\n"),
            "dev/kmsg": LOG.format("fde40000.npu"),
            "usr/lib/librknnrt.so": "version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
        },
        # A link that promises the NPU and leads elsewhere.
        links={"dev/rknpu": "dri/card0"},
        bsp="Debian GNU/Linux 12 (bookworm)",
        kernel="6.1.43-20-rk2312",
        driver="0.9.6",
        nodes=("/dev/dri/renderD129", "/dev/dri/card1"),
        library="probe blocked",
        missing=("runtime-library", "lite2"),
        needed=("runtime-library",),
    ),
    "armhf-user-space-rk3562": Image(
        soc="rk3562",
        files={
            **PYTHON_32,
            **tree(
                "rockchip,rk3562-evb1-lp4x-v10",
                "rockchip,rk3562",
                model="Rockchip RK3562 EVB1 LP4X V10 Board",
            ),
            "etc/os-release": "NAME=Buildroot\nID=buildroot\nPRETTY_NAME='Buildroot 2021.11'\n",
            "proc/sys/kernel/osrelease": "5.10.160\n",
            **drm(0, "RKNPU", "rockchip,rk3562-rknpu"),
            **npu_files("0.9.3", "NPU load:  0%\n"),
            "dev/kmsg": LOG.format("ff300000.npu"),
            # 64-bit, while the Python is 32-bit.
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.1.0 (967d001cc8@2024-08-07T19:28:19)"),
        },
        bsp="Buildroot 2021.11",
        kernel="5.10.160",
        driver="0.9.3",
        nodes=("/dev/dri/renderD128", "/dev/dri/card0"),
        library="probe blocked",
        missing=("runtime-library", "lite2"),
        needed=("runtime-library",),
    ),
    "buildroot-rv1126b": Image(
        soc="rv1126b",
        files={
            **PYTHON_64,
            **tree("rockchip,rv1126b-evb1-v10", "rockchip,rv1126b", model="Rockchip RV1126B EVB1 V10 Board"),
            "etc/os-release": "PRETTY_NAME='Buildroot 2024.02'\n",
            "proc/sys/kernel/osrelease": "6.1.141\n",
            **drm(0, "rockchip-drm", "rockchip,display-subsystem"),
            **drm(1, "RKNPU", "rockchip,rv1126b-rknpu"),
            **npu_files("0.9.8", "NPU load:  0%\n"),
            "dev/kmsg": LOG.format("22000000.npu"),
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
        },
        bsp="Buildroot 2024.02",
        kernel="6.1.141",
        driver="0.9.8",
        nodes=("/dev/dri/renderD129", "/dev/dri/card1"),
        library="librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        missing=("lite2",),
    ),
    "mainline-rk3588": Image(
        soc="rk3588",
        files={
            **PYTHON_64,
            **tree("radxa,rock-5b", "rockchip,rk3588", model="Radxa ROCK 5B"),
            **debian("13 (trixie)"),
            "proc/sys/kernel/osrelease": "6.18.2-arm64\n",
            **drm(0, "panthor", "rockchip,rk3588-mali"),
            "sys/class/accel/accel0/device/uevent": "DRIVER=rocket\nOF_COMPATIBLE_0=rockchip,rk3588-rknn\n",
            "sys/kernel/debug/clk/clk_summary": "",
            "dev/kmsg": "6,1,0,-;rocket fdab0000.npu: Rockchip NPU core 0 version: 1179210309\n",
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
        },
        bsp="Debian GNU/Linux 13 (trixie)",
        kernel="6.18.2-arm64",
        driver="absent",
        nodes=(),
        library="librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        missing=("npu-driver", "driver-version", "debugfs", "lite2"),
        needed=("npu-driver",),
    ),
    "container-rk3588": Image(
        soc="rk3588",
        files={
            **PYTHON_64,
            **debian(),
            "proc/sys/kernel/osrelease": "6.1.43-rockchip-rk3588\n",
            # sysfs is there, device tree, debugfs and kernel log are not, nor is the node.
            "sys/class/drm/renderD129/device/uevent": "DRIVER=RKNPU\nOF_COMPATIBLE_0=rockchip,rk3588-rknpu\n",
            "sys/module/rknpu/version": "0.9.8\n",
            "sys/kernel/debug/.keep": "",
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.3.2 (429f97ae6b@2025-04-09T09:09:27)"),
        },
        bsp="Debian GNU/Linux 12 (bookworm)",
        kernel="6.1.43-rockchip-rk3588",
        driver="0.9.8",
        nodes=("/dev/dri/renderD129",),
        library="librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        missing=("npu-access", "device-tree", "debugfs", "kernel-log", "lite2"),
        needed=("npu-access",),
    ),
    "wrong-board": Image(
        soc="rk3576",
        files={
            **PYTHON_64,
            **tree("rockchip,rk3588-orangepi-5-plus", "rockchip,rk3588", model="Orange Pi 5 Plus"),
            "etc/os-release": "PRETTY_NAME='Orange Pi'\n",
            "proc/sys/kernel/osrelease": "6.1.43-rockchip-rk3588\n",
            **drm(1, "RKNPU", "rockchip,rk3588-rknpu"),
            **npu_files("0.9.8", THREE_IDLE),
            "dev/kmsg": LOG.format("fdab0000.npu"),
            "usr/lib/librknnrt.so": runtime(AARCH64, "2.0.0b0 (35a6907d79@2024-03-24T02:34:11)"),
        },
        bsp="Orange Pi",
        kernel="6.1.43-rockchip-rk3588",
        driver="0.9.8",
        nodes=("/dev/dri/renderD129", "/dev/dri/card1"),
        library="librknnrt version: 2.0.0b0 (35a6907d79@2024-03-24T02:34:11)",
        missing=("soc", "lite2"),
        needed=("soc",),
    ),
}
