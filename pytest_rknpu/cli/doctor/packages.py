"""The Python that runs this, the packages beside it, and RKNN-Toolkit2."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from types import MappingProxyType

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pytest_rknpu.cli.doctor.bounded import ask
from pytest_rknpu.cli.doctor.finding import HOST, Finding, note, ok, problem
from pytest_rknpu.toolchain import ToolkitStatus
from pytest_rknpu.toolchain.status import LAST_PYTHON

DISTRIBUTION = "pytest-rknpu"
_NO_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
#: An import of the toolkit takes two seconds, with cold disks ten.
IMPORT_S = 60.0

#: What a failed import of the toolkit says -> what mends it. ``{0}`` is the expression's first group.
_IMPORT_MENDS: Mapping[str, str] = MappingProxyType(
    {
        r"libGL\.so\.1": "apt-get install libgl1",
        r"libgthread-2\.0\.so": "apt-get install libglib2.0-0",
        r"libgomp\.so\.1": "apt-get install libgomp1",
        r"No module named '?(\w+)": "pip install {0}",
        r"multiarray failed|_ARRAY_API|numpy\.dtype size changed": "pip install 'numpy<2'",
    }
)


def python_and_packages() -> Iterator[Finding]:
    """Whether this Python, and what is installed for it, are what this package asks for."""
    python = platform.python_version()
    try:
        own = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        yield problem(
            "packages",
            HOST,
            f"{DISTRIBUTION} is not installed for {sys.executable}: pytest does not find its plugin",
            f"pip install {DISTRIBUTION} (in a clone: pip install -e .)",
        )
        return
    wanted = own.metadata["Requires-Python"]
    if wanted and not SpecifierSet(wanted).contains(python, prereleases=True):
        says = f"Python {python} ({sys.executable}) is not {wanted}"
        yield problem(
            "python", HOST, says, f"python3.12 -m venv .venv && .venv/bin/pip install {DISTRIBUTION}"
        )
    else:
        yield ok("python", HOST, f"Python {python} ({sys.executable})")
    yield packages(map(Requirement, own.requires or ()))
    yield from _plugin()


def packages(required: Iterable[Requirement]) -> Finding:
    """Whether what ``required`` asks for (extras left out) is installed, in versions that it takes."""
    there, wrong, wanted = [], [], []
    for one in required:
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{one.name} is missing")
        else:
            if one.specifier.contains(version, prereleases=True):
                there.append(f"{one.name} {version}")
                continue
            wrong.append(f"{one.name} {version} is not {one.specifier}")
        wanted.append(f"'{one.name}{one.specifier}'")
    if wrong:
        return problem("packages", HOST, "; ".join(wrong), f"pip install {' '.join(wanted)}")
    return ok("packages", HOST, ", ".join(there))


def _plugin() -> Iterator[Finding]:
    """pytest loads the plugin by itself, unless it is told not to."""
    if os.environ.get(_NO_PLUGINS):
        says = f"${_NO_PLUGINS} is set: pytest does not load this package's plugin"
        yield problem("plugin", HOST, says, f"unset {_NO_PLUGINS} (or -p pytest_rknpu.plugin for each run)")


def toolkit(status: ToolkitStatus) -> Finding:
    """Whether RKNN-Toolkit2 is there, for this Python and processor, and can be imported."""
    if status.version is None:
        return note("toolkit", HOST, f"{status.reason}: nothing is compiled or simulated", _install(status))
    name = f"RKNN-Toolkit2 {status.version}"
    with tempfile.TemporaryDirectory(prefix="rknpu-doctor-") as folder:  # the toolkit may leave files
        answer = ask([sys.executable, "-c", "from rknn.api import RKNN"], IMPORT_S, folder)
    if answer.code == 0:
        return ok("toolkit", HOST, f"{name} can be imported")
    if answer.code is None:
        says = f"{name} is installed, but its import does not end within {IMPORT_S:g} s"
        return problem(
            "toolkit", HOST, says, f"{sys.executable} -X importtime -c 'from rknn.api import RKNN'"
        )
    words = answer.said.strip().splitlines() or [f"exit code {answer.code}"]
    return problem(
        "toolkit", HOST, f"{name} is installed, but cannot be imported: {words[-1]}", _mend_of(answer.said)
    )


def _install(status: ToolkitStatus) -> str:
    if "pkg_resources" in status.reason:
        return "pip install 'setuptools<81'"
    if sys.version_info[:2] > LAST_PYTHON:
        python = f"python{LAST_PYTHON[0]}.{LAST_PYTHON[1]}"
        return f"{python} -m venv .venv && .venv/bin/{status.install_command}"
    return status.install_command


def _mend_of(said: str) -> str:
    for pattern, mend in _IMPORT_MENDS.items():
        found = re.search(pattern, said)
        if found:
            return mend.format(*found.groups())
    return "pip install --force-reinstall rknn-toolkit2"
