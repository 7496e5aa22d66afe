"""Tells a stand-in for the NPU's driver from a driver: what answers then is no hardware."""

from __future__ import annotations

import os
from typing import Any

from . import npu_device
from .drm_version import drm_driver
from .readers import Absent, Blocked, Root

VARIABLES = "RKNPU_STAND_IN_"
"""How the names of the environment variables begin that a stand-in is set up with."""
WORD = "stand-in"
"""What a stand-in says in its description, which the driver gives as "RKNPU driver"."""


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
    driver = drm_driver(path)
    return driver.description if driver is not None else ""
