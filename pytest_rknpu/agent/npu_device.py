"""Finds the NPU's device node by the driver behind it, never by a number or a symbolic link (VER-04)."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from .parsers import is_rknpu, parse_uevent
from .readers import Absent, Blocked, Root

DRM = "sys/class/drm"
ACCELERATORS = "sys/class/accel"
MISC_NODE = "dev/rknpu"
OTHER_DRIVERS = ("rocket",)


def _uevent(root: Root, folder: str, name: str) -> dict[str, str]:
    return parse_uevent(root.optional(f"{folder}/{name}/device/uevent") or "")


def find(root: Root) -> dict[str, Any]:
    """``driver``, ``compatible`` and ``nodes`` (render nodes first) of the vendor's NPU driver.

    Raises ``Absent`` where no device is driven by rknpu.
    """
    try:
        # Render nodes first: the runtime needs no more, and opening a card node may make us its master.
        names = root.names(DRM, "renderD*") + root.names(DRM, "card*")
    except Absent:
        names = []
    events = {name: _uevent(root, DRM, name) for name in names}
    found = {name: event for name, event in events.items() if is_rknpu(event)}
    if found:
        event = next(iter(found.values()))
        return {
            "driver": event.get("DRIVER", "RKNPU"),
            "compatible": event.get("OF_COMPATIBLE_0"),
            "nodes": [f"/dev/dri/{name}" for name in found],
        }
    if _is_misc_device(root):
        return {"driver": "rknpu (misc device)", "compatible": None, "nodes": ["/" + MISC_NODE]}
    raise Absent(_why_none(root, names))


def _is_misc_device(root: Root) -> bool:
    """Whether the driver was built without DRM; a symbolic link of that name is no evidence."""
    path = root.path(MISC_NODE)
    if os.path.islink(path) or not os.path.exists(path):
        return False
    return not root.is_live or stat.S_ISCHR(os.stat(path).st_mode)


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


def access(root: Root) -> str:
    """The first node of the NPU that this user can open for reading and writing: presence is not use.

    Raises ``Blocked`` with what each node said, ``Absent`` where there is no NPU.
    """
    refused = []
    for node in find(root)["nodes"]:
        try:
            os.close(os.open(root.path(node.lstrip("/")), os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            hint = "; add the user to its group (video, render)" if error.errno == errno.EACCES else ""
            refused.append(f"{node}: {error.strerror}{hint}")
            continue
        return str(node)
    raise Blocked("; ".join(refused))
