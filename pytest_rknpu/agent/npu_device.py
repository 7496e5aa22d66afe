"""Finds the NPU's device node by the driver behind it, never by a number or a symbolic link (VER-04).

With DRM the driver has a card and a render node; vendor kernels built without it have a misc device instead.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from .drm_version import drm_driver
from .parsers import OTHER_DRIVERS, is_rknpu, parse_uevent
from .readers import Absent, Blocked, Root

DRM = "sys/class/drm"
MISC = "sys/class/misc/rknpu"
ACCELERATORS = "sys/class/accel"
MISC_NODE = "dev/rknpu"
DRM_FOLDER = "dev/dri"


def _uevent(root: Root, folder: str, name: str) -> dict[str, str]:
    return parse_uevent(root.optional(f"{folder}/{name}/device/uevent") or "")


def find(root: Root) -> dict[str, Any]:
    """``driver``, ``compatible``, ``nodes`` (render nodes first) and ``iommu`` of the vendor's NPU driver.

    ``iommu`` is the name under which the kernel log tells of page faults. Raises ``Absent`` where no device
    is driven by rknpu, ``Blocked`` where that cannot be seen.
    """
    try:
        # Render nodes first: the runtime needs no more, and opening a card node may make us its master.
        names: list[str] = root.names(DRM, "renderD*") + root.names(DRM, "card*")
    except Absent:
        names = []
    events = {name: _uevent(root, DRM, name) for name in names}
    found = {name: event for name, event in events.items() if is_rknpu(event)}
    if found:
        first, event = next(iter(found.items()))
        iommu = root.link(f"{DRM}/{first}/device/iommu")
        return {
            "driver": event.get("DRIVER", "RKNPU"),
            "compatible": event.get("OF_COMPATIBLE_0"),
            "nodes": [f"/{DRM_FOLDER}/{name}" for name in found],
            "iommu": None if iommu is None else os.path.basename(iommu),
        }
    if _is_misc_device(root):
        return {
            "driver": "rknpu (misc device)",
            "compatible": None,
            "nodes": ["/" + MISC_NODE],
            "iommu": None,
        }
    asked = _ask_nodes(root) if root.is_live and not names else []
    if asked:
        return {"driver": "rknpu", "compatible": None, "nodes": asked, "iommu": None}
    raise Absent(_why_none(root, names))


def iommu(root: Root) -> str | None:
    """The name of the NPU's IOMMU, under which the kernel log tells of page faults; None where unknown."""
    try:
        name: str | None = find(root)["iommu"]
    except (Absent, Blocked):
        return None
    return name


def _is_misc_device(root: Root) -> bool:
    """Whether the driver was built without DRM; a symbolic link of that name is no evidence."""
    if os.path.isdir(root.path(MISC)):  # also where a container has no node for it
        return True
    path = root.path(MISC_NODE)
    if os.path.islink(path) or not os.path.exists(path):
        return False
    return not root.is_live or stat.S_ISCHR(os.stat(path).st_mode)


def _ask_nodes(root: Root) -> list[str]:
    """The nodes whose driver calls itself rknpu, where sysfs tells nothing (some containers mask it)."""
    try:
        names = root.names(DRM_FOLDER, "renderD*") + root.names(DRM_FOLDER, "card*")
    except (Absent, Blocked):
        return []
    return [f"/{DRM_FOLDER}/{name}" for name in names if _is_the_npus(root.path(f"{DRM_FOLDER}/{name}"))]


def _is_the_npus(path: str) -> bool:
    driver = drm_driver(path)
    return driver is not None and driver.name.lower() == "rknpu"


def _why_none(root: Root, names: list[str]) -> str:
    why = f"none of {len(names)} DRM devices is driven by rknpu, and there is no misc device /{MISC_NODE}"
    try:
        other = find_other(root)
    except (Absent, Blocked):
        return why
    return f"{why}; the NPU is driven by {other['driver']}, another stack that librknnrt cannot use"


def find_other(root: Root) -> dict[str, Any]:
    """``driver`` and ``nodes`` of a driver for the same NPU that belongs to another software stack."""
    for name in root.names(ACCELERATORS, "accel*"):
        driver = _uevent(root, ACCELERATORS, name).get("DRIVER", "")
        if driver.lower() in OTHER_DRIVERS:
            return {"driver": driver, "nodes": [f"/dev/accel/{name}"]}
    raise Absent(f"no accelerator is driven by {' or '.join(OTHER_DRIVERS)}")


def access(root: Root) -> dict[str, Any]:
    """``node``: the first of the NPU that this user can open for reading and writing (presence is not use).

    ``refused``: what the others said, in words. Raises ``Blocked`` with that where none can be opened,
    ``Absent`` where there is no NPU.
    """
    usable = None
    refused = []
    for node in find(root)["nodes"]:
        path = root.path(node.lstrip("/"))
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as error:
            refused.append(f"{node}{_owner(path)}: {error.strerror}{_remedy(error, path, node)}")
            continue
        usable = usable or node
    if usable is None:
        raise Blocked("; ".join(refused))
    return {"node": usable, "refused": refused}


def _remedy(error: OSError, path: str, node: str) -> str:
    if error.errno == errno.EACCES:
        group = _group(path)
        if group in (None, "root"):
            return (
                f"; only root may: a udev rule gives it to the group render or video, such as "
                f'{_udev_match(node)}, GROUP="render", MODE="0660"'
            )
        return f"; add the user to its group (sudo usermod -aG {group} USER) and log in again"
    if error.errno == errno.EPERM:
        return f"; the container may not use it: start it with --device {node}"
    if error.errno == errno.ENOENT:
        return f"; the driver is there, its node is not: no udev, or a container without --device {node}"
    return ""


def _udev_match(node: str) -> str:
    """What a udev rule knows the node by; the numbers of DRM nodes differ from image to image."""
    name = os.path.basename(node)
    if not node.startswith("/dev/dri/"):
        return f'SUBSYSTEM=="misc", KERNEL=="{name}"'
    kind = name.rstrip("0123456789")
    return f'SUBSYSTEM=="drm", KERNEL=="{kind}*", DRIVERS=="RKNPU|rknpu"'


def _group(path: str) -> str | None:
    try:
        import grp

        return grp.getgrgid(os.stat(path).st_gid).gr_name
    except (OSError, KeyError, ImportError):
        return None


def _owner(path: str) -> str:
    """`` (crw-rw---- root:render)``, as ls shows it; empty where it cannot be seen."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    try:
        import pwd

        user = pwd.getpwuid(status.st_uid).pw_name
    except (KeyError, ImportError):
        user = str(status.st_uid)
    return f" ({stat.filemode(status.st_mode)} {user}:{_group(path) or status.st_gid})"
