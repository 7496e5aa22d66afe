"""What the driver behind a DRM node says of itself (DRM_IOCTL_VERSION of the kernel's drm.h)."""

from __future__ import annotations

import ctypes
import fcntl
import os
from typing import NamedTuple

_NAME_ROOM = 64
_DESCRIPTION_ROOM = 128


class _DrmVersion(ctypes.Structure):
    """``struct drm_version``."""

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


# _IOWR('d', 0x00, struct drm_version)
_DRM_IOCTL_VERSION = 3 << 30 | ctypes.sizeof(_DrmVersion) << 16 | ord("d") << 8


class DrmDriver(NamedTuple):
    """The driver's name and its description of itself."""

    name: str
    description: str


def drm_driver(path: str) -> DrmDriver | None:
    """The driver of the node at ``path``; None where the node cannot be opened or does not answer."""
    name = ctypes.create_string_buffer(_NAME_ROOM)
    description = ctypes.create_string_buffer(_DESCRIPTION_ROOM)
    version = _DrmVersion(
        name_length=_NAME_ROOM - 1,
        name=ctypes.addressof(name),
        description_length=_DESCRIPTION_ROOM - 1,
        description=ctypes.addressof(description),
    )
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.ioctl(descriptor, _DRM_IOCTL_VERSION, version)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return DrmDriver(name.value.decode("ascii", "replace"), description.value.decode("utf-8", "replace"))
