"""Whether RKNN-Toolkit2 can be used here, found without importing it (that replaces the root logger)."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata, util

from pytest_rknpu.errors import ToolkitError

DISTRIBUTION = "rknn-toolkit2"
INSTALL_COMMAND = "pip install 'pytest-rknpu[toolkit]'"
MACHINES = ("x86_64", "aarch64")
LAST_PYTHON = (3, 12)


@dataclass(frozen=True)
class ToolkitStatus:
    """``version`` is None where the toolkit cannot be used; ``reason`` then says why, in one line."""

    version: str | None
    reason: str
    install_command: str = INSTALL_COMMAND


def toolkit_status() -> ToolkitStatus:
    """Looks at the installed packages, the platform and what the toolkit needs beside it."""
    try:
        version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ToolkitStatus(None, f"RKNN-Toolkit2 is not installed{_no_build()}")
    if util.find_spec("pkg_resources") is None:
        return ToolkitStatus(
            None, f"RKNN-Toolkit2 {version} imports pkg_resources, which setuptools has dropped since 81"
        )
    return ToolkitStatus(version, "")


def require_toolkit() -> str:
    """The toolkit's version. ToolkitError with the reason and the install command where it cannot be used."""
    status = toolkit_status()
    if status.version is None:
        raise ToolkitError(f"{status.reason}; install it with: {status.install_command}")
    return status.version


def _no_build() -> str:
    """Where no wheel fits this interpreter the install command alone would not help."""
    machine, python = platform.machine(), sys.version_info[:2]
    if sys.platform == "linux" and machine in MACHINES and python <= LAST_PYTHON:
        return ""
    return (
        f", and has no build for Python {python[0]}.{python[1]} on {sys.platform} {machine} "
        f"(only for Linux on {' or '.join(MACHINES)}, Python up to {LAST_PYTHON[0]}.{LAST_PYTHON[1]})"
    )
