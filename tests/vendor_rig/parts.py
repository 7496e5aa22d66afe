"""What the rig is made of, and where it comes from: each part is found or made once, or says what is missing.

Packages come from their registries where the tests run, and stay in a cache outside the tree: the runtime is
the vendor's property. Nothing of it, and nothing made from it, is ever part of this repository.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from filelock import FileLock

from tests.arm_python import ArmPython, CannotBeHad, provide

__all__ = ["CannotBeHad", "arm64_python", "compiled", "packages", "runtime_library", "unshare"]

HERE = Path(__file__).parent
DRIVER = HERE / "driver"
RUNTIME_PACKAGE = "rknpu==1.5.2"
_COMPILER = "aarch64-linux-gnu-gcc"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
_PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")
_PIP_SECONDS = 300


def arm64_python(*debian_packages: str) -> ArmPython:
    """A real arm64 CPython with what the runtime library links with, and further Debian packages."""
    return provide("arm64", ("libstdc++6", *debian_packages))


def unshare() -> list[str]:
    """The command in whose private mount namespace a board runs, as an argument vector to extend."""
    program = shutil.which("unshare")
    if program is None:
        raise CannotBeHad("no unshare here; install it with: apt-get install util-linux")
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = [program, *as_root, "--mount", "--propagation", "private", "--"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise CannotBeHad(f"no private mount namespace can be made here: {tried.stderr.strip()}; run as root")
    return command


def compiled(folder: Path, name: str, *options: str) -> Path:
    """An aarch64 program or library made of the C files in ``folder``, kept by their content."""
    compiler = shutil.which(_COMPILER)
    if compiler is None:
        install = "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        raise CannotBeHad(f"no {_COMPILER} here; install it with: {install}")
    sources = sorted(folder.glob("*.[ch]"))
    content = hashlib.sha256(repr((_FLAGS, options)).encode())
    for source in sources:
        content.update(source.read_bytes())
    made = _cache("built") / f"{content.hexdigest()[:16]}-{name}"
    with FileLock(f"{made}.lock"):
        if not made.exists():
            unfinished = made.with_suffix(".unfinished")
            files = [str(source) for source in sources if source.suffix == ".c"]
            command = [compiler, *_FLAGS, *options, "-o", str(unfinished), *files, "-lpthread", "-ldl"]
            subprocess.run(command, check=True)
            unfinished.rename(made)
    return made


def runtime_library() -> Path:
    """The vendor's librknnrt 1.5.2 for aarch64, out of a wheel that brings it along."""
    (library,) = (packages(RUNTIME_PACKAGE) / "rknpu.libs").glob("librknnrt-*.so")
    return library


def packages(*requirements: str) -> Path:
    """A folder with the aarch64 wheels of ``requirements`` unpacked, without what they depend on; kept."""
    recipe = hashlib.sha256(repr((requirements, _PLATFORMS)).encode()).hexdigest()[:12]
    folder = _cache("packages") / recipe
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _download(requirements, folder)
    return folder


def _download(requirements: tuple[str, ...], folder: Path) -> None:
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as name:
        wheels, made = Path(name) / "wheels", Path(name) / "made"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += [*platforms, "--python-version", "3.11", "--dest", str(wheels), *requirements]
        missing = f"{' '.join(requirements)} is not installed, and pip did not bring it"
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise CannotBeHad(f"{missing} within {_PIP_SECONDS} s") from None
        if done.returncode:
            raise CannotBeHad(f"{missing}: {' '.join(done.stderr.split())[-300:]}")
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(made)
        made.rename(folder)


def _cache(part: str) -> Path:
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = Path(os.environ.get("RKNPU_TEST_VENDOR_RIG") or user / "pytest-rknpu-tests" / "vendor-rig")
    folder = kept / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()
