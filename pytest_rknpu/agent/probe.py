"""What a board is and runs (VER-01, VER-02, VER-04): each fact as value, absent or blocked, with the reason.

``probe(root, library)`` reads below ``root`` and gives ``{name: fact}``; a fact is ``{"value": ..}``,
``{"absent": why}`` (this board has none) or ``{"blocked": why}`` (it could not be looked at). What is in a
dict can be None or empty where the board does not say.

======================  ======================================================================================
name                    value
======================  ======================================================================================
device_tree_compatible  list of str: all NUL-separated entries
device_tree_model       str
os_release              dict of str: the assignments of /etc/os-release
android                 dict of str: what Android's build.prop says of the image
vendor_release          dict of str by file name: what the image's vendor wrote about it
kernel                  dict: release, banner
command_line            str, with the values of what may be secret hidden
machine                 str, such as aarch64
user                    dict: uid, name, groups (list of str) of the agent
driver_version          dict: version, source (a path, or "kernel log"), date
debugfs                 str: the folder in which the NPU driver's files can be read
npu_device              dict: driver, compatible, nodes (paths), found by the driver's name; iommu (its name)
npu_access              dict: node (the one that could be opened), refused (list of str: what others said)
npu_users               list of dict: pid, name of other programs that have the NPU open
other_npu_driver        dict: driver, nodes, of mainline's rocket, which librknnrt cannot use
stand_in                dict: told_by (what gave it away), where the driver is a stand-in and no hardware
npu_load                list of int: percent per core
npu_clock, ddr_clock    dict: node, governor, governors, hertz, available_hertz, load, transitions
cpu_clocks              dict by policy: governor, hertz, available_hertz, minimum_hertz, maximum_hertz,
                        transitions
thermal                 list of dict: zone, type, millidegrees, trips (list of dict: type, millidegrees)
npu_iommu               "enabled" or "disabled"
npu_kernel_log          list of dict: sequence, seconds, level, text of the last messages about the NPU
runtime_library         dict: path, elf, text, version, commit, date, others (paths of other copies)
rknn_server             dict: path, text, version, commit, date, pid (None where it does not run)
lite_version            str: RKNN-Toolkit-Lite2 for this Python
python                  dict: version, implementation, executable, bits
======================  ======================================================================================
"""

from __future__ import annotations

import os
import platform
import struct
import sys
from typing import Any

from . import clocks, identity, kernel_log, lite, npu_device, processes, stand_in
from .library import check_shared_object, find_library, installed_libraries
from .parsers import library_version, parse_npu_load, parse_version, server_version
from .readers import Absent, Blocked, Fact, Root, fact

DEBUGFS = "sys/kernel/debug"
DRIVER_FOLDERS = (f"{DEBUGFS}/rknpu", "proc/rknpu")
DRIVER_FILES = (f"{DEBUGFS}/rknpu/version", "sys/module/rknpu/version", "proc/rknpu/version")
LOAD_FILES = (f"{DEBUGFS}/rknpu/load", "proc/rknpu/load")
SERVER = "rknn_server"
SERVER_FOLDERS = ("usr/bin", "usr/local/bin", "vendor/bin", "oem/usr/bin", "system/bin", "userdata")
NO_VERSION = {"text": None, "version": None, "commit": None, "date": None}
MAXIMUM_LIBRARY = 256 * 2**20


def probe(root_folder: str, library: dict[str, Any]) -> dict[str, Fact]:
    """All facts about the board below ``root_folder``; ``library`` is the one of the request ``start``."""
    root = Root(root_folder)
    return {
        "device_tree_compatible": fact(identity.device_tree_compatible, root),
        "device_tree_model": fact(identity.device_tree_model, root),
        "os_release": fact(identity.os_release, root),
        "android": fact(identity.android, root),
        "vendor_release": fact(identity.vendor_release, root),
        "kernel": fact(identity.kernel, root),
        "command_line": fact(identity.command_line, root),
        "machine": fact(platform.machine),
        "user": fact(identity.user),
        "driver_version": fact(driver_version, root),
        "debugfs": fact(debugfs, root),
        "npu_device": fact(npu_device.find, root),
        "npu_access": fact(npu_device.access, root),
        "npu_users": fact(npu_users, root),
        "other_npu_driver": fact(npu_device.find_other, root),
        "stand_in": fact(stand_in.find, root),
        "npu_load": fact(npu_load, root),
        "npu_clock": fact(clocks.npu, root),
        "ddr_clock": fact(clocks.ddr, root),
        "cpu_clocks": fact(clocks.cpu, root),
        "thermal": fact(clocks.thermal, root),
        "npu_iommu": fact(npu_iommu, root),
        "npu_kernel_log": fact(npu_kernel_log, root),
        "runtime_library": fact(runtime_library, root, library),
        "rknn_server": fact(rknn_server, root),
        "lite_version": fact(lite.installed_version, root),
        "python": fact(python),
    }


def driver_version(root: Root) -> dict[str, str | None]:
    """The rknpu driver's version: from debugfs, else the module, else procfs, else the kernel log."""
    blocked = []
    for path in DRIVER_FILES:
        try:
            version = parse_version(root.read(path))["version"]
        except Absent:
            continue
        except Blocked as error:
            blocked.append(str(error))
            continue
        if version is not None:
            return {"version": version, "source": "/" + path, "date": None}
    try:
        found = kernel_log.driver_in(kernel_log.read_start(root))
    except Absent:
        found = None
    except Blocked as error:
        found = None
        blocked.append(str(error))
    if found is not None:
        return {"version": found["version"], "source": "kernel log", "date": found["date"]}
    if blocked:
        raise Blocked("; ".join(blocked))
    raise Absent("no rknpu driver: neither debugfs, module, /proc/rknpu nor kernel log tell of it")


def debugfs(root: Root) -> str:
    """The folder in which the NPU driver's own files can be read: debugfs, or /proc/rknpu."""
    blocked = None
    for folder in DRIVER_FOLDERS:
        try:
            root.names(folder, "*")
        except Absent:
            continue
        except Blocked as error:
            blocked = error
            continue
        return "/" + folder
    if blocked is not None:
        raise blocked
    if not root.names(DEBUGFS, "*"):
        raise Absent(
            f"debugfs is not mounted: as root, mount -t debugfs none /{DEBUGFS} (takes CONFIG_DEBUG_FS)"
        )
    raise Absent(
        f"debugfs is mounted, but there is no /{DRIVER_FOLDERS[0]}, nor /{DRIVER_FOLDERS[1]}: the rknpu "
        "driver is not loaded, or was built without CONFIG_ROCKCHIP_RKNPU_DEBUG_FS and _PROC_FS"
    )


def npu_users(root: Root) -> list[dict[str, Any]]:
    """Other programs that have the NPU's node open; whoever computes there changes what is measured."""
    return processes.users_of(root, npu_device.find(root)["nodes"])


def npu_load(root: Root) -> list[int]:
    """Load of each NPU core in percent."""
    text = root.read_first(*LOAD_FILES)
    load = parse_npu_load(text)
    if load is None:
        raise Absent(f"the driver's load file says {text[:80]!r}")
    return load


def npu_iommu(root: Root) -> str:
    """Whether the NPU works behind an IOMMU, by the driver's own words in the kernel log."""
    mode = kernel_log.iommu_in(kernel_log.read_start(root))
    if mode is None:
        raise Absent("the kernel log does not say (any more) whether the NPU uses an IOMMU")
    return mode


def npu_kernel_log(root: Root) -> list[dict[str, Any]]:
    """The last messages of the kernel about the NPU, from its log as it stands."""
    records = kernel_log.read_live(root)
    return kernel_log.about_the_npu(records, npu_device.iommu(root))[-kernel_log.MOST_TOLD :]


def runtime_library(root: Root, library: dict[str, Any]) -> dict[str, Any]:
    """The runtime library's file and the version string inside it; its ELF header is checked first."""
    if library.get("kind") != "shared-object":
        raise Absent("the runtime is software, there is no library file")
    name = str(library.get("path"))
    path = find_library(name, root.folder)
    if path is None or not os.path.lexists(path):
        raise Absent(f"{name} is {'not there' if os.sep in name else 'in none of the usual library folders'}")
    try:
        elf = check_shared_object(path, root.folder)
    except Exception as error:
        raise Blocked(str(error)) from error
    with open(path, "rb") as file:
        version = library_version(file.read(MAXIMUM_LIBRARY))
    own = os.path.realpath(path)
    copies = installed_libraries(os.path.basename(name), root.folder)
    others = [copy for copy in copies if os.path.realpath(copy) != own]
    return {"path": path, "elf": elf.describe(), **(version or NO_VERSION), "others": others}


def rknn_server(root: Root) -> dict[str, Any]:
    """The rknn_server program that links a PC to the board: where it is installed, or what runs."""
    pid = processes.running(root, SERVER)
    paths = [f"{folder}/{SERVER}" for folder in SERVER_FOLDERS] + ([f"proc/{pid}/exe"] if pid else [])
    blocked = None
    for path in paths:
        try:
            with open(root.path(path), "rb") as file:
                version = server_version(file.read(MAXIMUM_LIBRARY))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            blocked = Blocked(f"/{path}: {error.strerror}")
            continue
        return {"path": "/" + path, **(version or NO_VERSION), "pid": pid}
    if blocked is not None:
        raise blocked
    raise Absent("rknn_server is not installed")


def python() -> dict[str, Any]:
    """The interpreter that the agent runs in."""
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "bits": struct.calcsize("P") * 8,
    }
