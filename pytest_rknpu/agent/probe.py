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
vendor_release          dict of str by file name: what the image's vendor wrote about it
kernel                  dict: release, banner
command_line            str
machine                 str, such as aarch64
driver_version          dict: version, source (a path, or "kernel log"), date
npu_device              dict: driver, compatible, nodes (paths), found by the driver's name
npu_access              str: the node that could be opened
other_npu_driver        dict: driver, nodes, of mainline's rocket, which librknnrt cannot use
npu_load                list of int: percent per core
npu_clock, ddr_clock    dict: node, governor, governors, hertz, available_hertz, load, transitions
cpu_clocks              dict by policy: governor, hertz, available_hertz, minimum_hertz, maximum_hertz,
                        transitions
thermal                 list of dict: zone, type, millidegrees, trips (list of dict: type, millidegrees)
npu_iommu               "enabled" or "disabled"
npu_kernel_log          list of str: the last messages of the kernel about the NPU
runtime_library         dict: path, elf, text, version, commit, date
rknn_server             dict: path, text, version, commit, date
lite_version            str: RKNN-Toolkit-Lite2 for this Python
python                  dict: version, implementation
======================  ======================================================================================
"""

from __future__ import annotations

import os
import platform
from typing import Any

from . import clocks, npu_device
from .library import check_shared_object, find_library
from .parsers import (
    driver_in_kernel_log,
    iommu_in_kernel_log,
    library_version,
    npu_lines,
    parse_kernel_log,
    parse_npu_load,
    parse_os_release,
    parse_strings,
    parse_version,
    server_version,
)
from .readers import Absent, Blocked, Fact, Root, fact

DEVICE_TREE = ("proc/device-tree", "sys/firmware/devicetree/base")
VENDOR_FILES = ("*-release", "*_release", "*_version", "radxa_image_fingerprint", "version", "rk_version")
NOT_VENDOR_FILES = ("os-release", "lsb-release", "debian_version", "system-release")
DRIVER_FILES = ("sys/kernel/debug/rknpu/version", "sys/module/rknpu/version", "proc/rknpu/version")
LOAD_FILES = ("sys/kernel/debug/rknpu/load", "proc/rknpu/load")
SERVER_FILES = ("usr/bin/rknn_server", "vendor/bin/rknn_server", "oem/usr/bin/rknn_server")
LOG_FILES = ("dev/kmsg", "var/log/dmesg")
NO_VERSION = {"text": None, "version": None, "commit": None, "date": None}
LAST_LINES = 50
MAXIMUM_LIBRARY = 256 * 2**20


def probe(root_folder: str, library: dict[str, Any]) -> dict[str, Fact]:
    """All facts about the board below ``root_folder``; ``library`` is the one of the request ``start``."""
    root = Root(root_folder)
    return {
        "device_tree_compatible": fact(device_tree_compatible, root),
        "device_tree_model": fact(device_tree_model, root),
        "os_release": fact(os_release, root),
        "vendor_release": fact(vendor_release, root),
        "kernel": fact(kernel, root),
        "command_line": fact(root.read, "proc/cmdline"),
        "machine": fact(platform.machine),
        "driver_version": fact(driver_version, root),
        "npu_device": fact(npu_device.find, root),
        "npu_access": fact(npu_device.access, root),
        "other_npu_driver": fact(npu_device.find_other, root),
        "npu_load": fact(npu_load, root),
        "npu_clock": fact(clocks.npu, root),
        "ddr_clock": fact(clocks.ddr, root),
        "cpu_clocks": fact(clocks.cpu, root),
        "thermal": fact(clocks.thermal, root),
        "npu_iommu": fact(npu_iommu, root),
        "npu_kernel_log": fact(npu_kernel_log, root),
        "runtime_library": fact(runtime_library, root, library),
        "rknn_server": fact(rknn_server, root),
        "lite_version": fact(lite_version, root),
        "python": fact(python),
    }


def _device_tree(root: Root, name: str) -> bytes:
    blocked = None
    for folder in DEVICE_TREE:
        try:
            return root.read_bytes(f"{folder}/{name}")
        except Absent:
            continue
        except Blocked as error:
            blocked = error
    if blocked is not None:
        raise blocked
    raise Absent(f"there is no /proc/device-tree/{name}: no device tree, or a container masks it")


def device_tree_compatible(root: Root) -> list[str]:
    """All entries of the root node's ``compatible``, most specific first."""
    return parse_strings(_device_tree(root, "compatible"))


def device_tree_model(root: Root) -> str:
    """The root node's ``model``."""
    return " ".join(parse_strings(_device_tree(root, "model")))


def os_release(root: Root) -> dict[str, str]:
    """The assignments of os-release."""
    return parse_os_release(root.read_first("etc/os-release", "usr/lib/os-release"))


def vendor_release(root: Root) -> dict[str, str]:
    """Contents (the first 4,096 characters) of the files in which images name themselves."""
    names = [name for name in root.names("etc", *VENDOR_FILES) if name not in NOT_VENDOR_FILES]
    texts = {name: root.optional(f"etc/{name}") for name in names}
    found = {name: text[:4096] for name, text in texts.items() if text}
    if not found:
        raise Absent(f"/etc has no vendor release file ({', '.join(VENDOR_FILES)})")
    return found


def kernel(root: Root) -> dict[str, str | None]:
    """Release and banner of the running kernel."""
    release = root.optional("proc/sys/kernel/osrelease")
    banner = root.optional("proc/version")
    if release is None and root.is_live:
        release = os.uname().release
    if release is None and banner is None:
        raise Absent("there is neither /proc/sys/kernel/osrelease nor /proc/version")
    return {"release": release, "banner": banner}


def _kernel_log(root: Root) -> list[str]:
    return parse_kernel_log(root.read_first(*LOG_FILES))


def driver_version(root: Root) -> dict[str, str | None]:
    """The rknpu driver's version: from debugfs, else the module, else the kernel log."""
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
        found = driver_in_kernel_log(_kernel_log(root))
    except Absent:
        found = None
    except Blocked as error:
        found = None
        blocked.append(str(error))
    if found is not None:
        return {"version": found["version"], "source": "kernel log", "date": found["date"]}
    if blocked:
        raise Blocked("; ".join(blocked))
    raise Absent("no rknpu driver: neither debugfs, module nor kernel log tell of it")


def npu_load(root: Root) -> list[int]:
    """Load of each NPU core in percent."""
    text = root.read_first(*LOAD_FILES)
    load = parse_npu_load(text)
    if load is None:
        raise Absent(f"the driver's load file says {text[:80]!r}")
    return load


def npu_iommu(root: Root) -> str:
    """Whether the NPU works behind an IOMMU, by the driver's own words in the kernel log."""
    mode = iommu_in_kernel_log(_kernel_log(root))
    if mode is None:
        raise Absent("the kernel log does not say (any more) whether the NPU uses an IOMMU")
    return mode


def npu_kernel_log(root: Root) -> list[str]:
    """The last messages of the kernel about the NPU."""
    return npu_lines(_kernel_log(root))[-LAST_LINES:]


def runtime_library(root: Root, library: dict[str, Any]) -> dict[str, Any]:
    """The runtime library's file and the version string inside it; its ELF header is checked first."""
    if library.get("kind") != "shared-object":
        raise Absent("the runtime is software, there is no library file")
    path = find_library(str(library.get("path")), root.folder)
    if path is None:
        raise Absent(f"{library.get('path')} is in none of the usual library folders")
    try:
        elf = check_shared_object(path)
    except Exception as error:
        raise Blocked(str(error)) from error
    with open(path, "rb") as file:
        version = library_version(file.read(MAXIMUM_LIBRARY))
    return {"path": path, "elf": elf.describe(), **(version or NO_VERSION)}


def rknn_server(root: Root) -> dict[str, str | None]:
    """The rknn_server program that links a PC to the board, where it is installed."""
    for path in SERVER_FILES:
        if os.path.exists(root.path(path)):
            try:
                with open(root.path(path), "rb") as file:
                    version = server_version(file.read(MAXIMUM_LIBRARY))
            except OSError as error:
                raise Blocked(f"/{path}: {error.strerror}") from error
            return {"path": "/" + path, **(version or NO_VERSION)}
    raise Absent("rknn_server is not installed")


def lite_version(root: Root) -> str:
    """The version of RKNN-Toolkit-Lite2 that this Python would import."""
    from importlib import metadata

    if not root.is_live:
        raise Absent("the board is software: packages of this Python are not its own")
    try:
        return metadata.version("rknn-toolkit-lite2")
    except metadata.PackageNotFoundError:
        raise Absent("rknn-toolkit-lite2 is not installed for this Python") from None


def python() -> dict[str, str]:
    """The interpreter that the agent runs in."""
    return {"version": platform.python_version(), "implementation": platform.python_implementation()}
