"""Tells a stand-in for the NPU's driver from a driver: what answers then is no hardware."""

from __future__ import annotations

import ctypes
import fcntl
import os
from typing import Any

from . import npu_device
from .readers import Absent, Blocked, Root

VARIABLES = "RKNPU_STAND_IN_"
"""How the names of the environment variables begin that a stand-in is set up with."""
WORD = "stand-in"
"""What a stand-in says in its description, which the driver gives as "RKNPU driver"."""
_ROOM = 128
_WRITE_AND_READ = 3 << 30


class _Version(ctypes.Structure):
    """struct drm_version of the kernel's drm.h."""

    _fields_ = [
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("name_length", ctypes.c_size_t),
        ("name", ctypes.c_void_p),
        ("date_length", ctypes.c_size_t),
        ("date", ctypes.c_void_p),
        ("description_length", ctypes.c_size_t),
        ("description", ctypes.c_void_p),
    ]


_DRM_VERSION = _WRITE_AND_READ | ctypes.sizeof(_Version) << 16 | ord("d") << 8


def find(root: Root) -> dict[str, Any]:
    """``told_by``: what gave the stand-in away. Raises ``Absent`` where nothing did."""
    if not root.is_live:
        raise Absent("the board is software: its files are not this machine's")
    for name in sorted(os.environ):
        if name.startswith(VARIABLES):
            return {"told_by": f"the environment variable {name}"}
    try:
        nodes = npu_device.find(root)["nodes"]
    except (Absent, Blocked):
        nodes = []
    for node in nodes:
        description = describe(root.path(node.lstrip("/")))
        if WORD in description:
            return {"told_by": f"{node}, which describes its driver as {description!r}"}
    raise Absent("neither a driver nor the environment says that it stands in for the driver")


def describe(path: str) -> str:
    """A DRM driver's description of itself (DRM_IOCTL_VERSION); empty where it gives none."""
    room = ctypes.create_string_buffer(_ROOM)
    version = _Version(description_length=_ROOM - 1, description=ctypes.addressof(room))
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        fcntl.ioctl(descriptor, _DRM_VERSION, version, True)
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return room.value.decode("utf-8", "replace")
