"""Whether RKNN-Toolkit2 can be used here, found without importing it (that takes seconds and replaces the root logger)."""

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
    """``version`` is None where the toolkit cannot be used; then ``reason`` says why, in one line with the remedy."""

    version: str | None
    reason: str
    install_command: str = INSTALL_COMMAND


def toolkit_status() -> ToolkitStatus:
    """Looks at the installed packages, the platform and what the toolkit needs beside it."""
    try:
        version = metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return ToolkitStatus(None, f"RKNN-Toolkit2 is not installed: {_remedy()}")
    if util.find_spec("pkg_resources") is None:
        return ToolkitStatus(
            None,
            f"RKNN-Toolkit2 {version} imports pkg_resources, which setuptools 81 dropped: {INSTALL_COMMAND}",
        )
    return ToolkitStatus(version, "")


def require_toolkit() -> str:
    """The toolkit's version. ToolkitError with the reason and the install command where it cannot be used."""
    status = toolkit_status()
    if status.version is None:
        raise ToolkitError(status.reason)
    return status.version


def _remedy() -> str:
    machine, python = platform.machine(), sys.version_info[:2]
    if sys.platform != "linux" or machine not in MACHINES or python > LAST_PYTHON:
        return (
            f"it has no build for Python {python[0]}.{python[1]} on {sys.platform} {machine} (it takes Python up "
            f"to {LAST_PYTHON[0]}.{LAST_PYTHON[1]} on Linux, {' or '.join(MACHINES)}); there, {INSTALL_COMMAND}"
        )
    return INSTALL_COMMAND
