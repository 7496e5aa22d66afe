"""CPython of the boards' own architectures on this host: Debian's packages, run by qemu's user emulation.

`arm_python` gives a Python that is one path, so that it fits wherever boards.toml has ``python``. Its
packages come from the apt sources of this host, through lists of their own: the system's packages,
architectures and lists stay as they are, and no root is needed. What was unpacked is kept, by its list of
packages, in ``$RKNPU_TEST_ARM_PYTHON`` or the user's cache folder.

``python tests/arm_python.py`` prepares both and prints where they are.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

PACKAGES = ("python3-minimal", "libpython3-stdlib")
_APT_SECONDS = 300


@dataclass(frozen=True)
class _Architecture:
    qemu: str
    multiarch: str


_ARCHITECTURES = {
    "arm64": _Architecture("aarch64", "aarch64-linux-gnu"),
    "armhf": _Architecture("arm", "arm-linux-gnueabihf"),
}

# Python finds its library, and its children the same Python, by the name that it was called by. That is why
# qemu is told the script's name as the program's own.
_SCRIPT = """\
#!/bin/sh
root=${{0%/usr/bin/python3}}
exec {qemu} -L "$root" -E LD_LIBRARY_PATH="$root{libraries}/blas:$root{libraries}/lapack" \\
  -0 "$0" "$root"/usr/bin/python3.real "$@"
"""


class CannotBeHad(Exception):
    """This host has no such Python; the message says why and what to do."""


@dataclass(frozen=True)
class ArmPython:
    """A CPython for ``architecture`` (Debian's name).

    ``python`` is an executable script: absolute path, takes Python's own arguments. ``root`` is the root
    folder of its packages, for ``qemu -L``; ``qemu`` the emulator's path, for programs other than Python.
    """

    architecture: str
    python: Path
    root: Path
    qemu: str

    @property
    def command(self) -> list[str]:
        """How to call it, as an argument vector to extend."""
        return [str(self.python)]

    def program(self, path: Path | str) -> list[str]:
        """How to run another program of this architecture, as an argument vector to extend."""
        return [self.qemu, "-L", str(self.root), str(path)]


def arm_python(architecture: str, packages: tuple[str, ...] = ()) -> ArmPython:
    """The Python of ``architecture`` ("arm64" or "armhf"), with further Debian ``packages`` such as
    python3-numpy. Skips the test, with what was missing, where it cannot be had.
    """
    try:
        return provide(architecture, packages)
    except CannotBeHad as error:
        pytest.skip(str(error))


def provide(architecture: str, packages: tuple[str, ...] = ()) -> ArmPython:
    """What `arm_python` does, without pytest: raises CannotBeHad."""
    kind = _ARCHITECTURES[architecture]
    qemu = shutil.which(f"qemu-{kind.qemu}-static") or shutil.which(f"qemu-{kind.qemu}")
    if qemu is None:
        raise CannotBeHad(f"no qemu-{kind.qemu} here; install it with: apt-get install qemu-user-static")
    wanted = PACKAGES + tuple(sorted(packages))
    recipe = hashlib.sha256(repr((wanted, qemu, _SCRIPT)).encode()).hexdigest()[:12]
    root = _cache() / f"{architecture}-{recipe}"
    with FileLock(f"{root}.lock"):
        if not root.exists():
            _unpack(architecture, wanted, qemu, root)
    return ArmPython(architecture, root / "usr/bin/python3", root, qemu)


def _cache() -> Path:
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get("RKNPU_TEST_ARM_PYTHON") or user / "pytest-rknpu-tests" / "arm-python")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _unpack(architecture: str, packages: tuple[str, ...], qemu: str, root: Path) -> None:
    """Make ``root``, which appears only once it is whole."""
    with tempfile.TemporaryDirectory(dir=root.parent, prefix="unfinished-") as name:
        made = Path(name) / "root"
        made.mkdir()
        for archive in _download(architecture, packages, Path(name) / "apt"):
            _run(["dpkg-deb", "-x", str(archive), str(made)], f"{archive.name} is damaged")
        # Python asks this binary's real name for the library of its version.
        python = made / "usr/bin/python3"
        (made / "usr/bin/python3.real").symlink_to(os.readlink(python))
        python.unlink()
        libraries = f"/usr/lib/{_ARCHITECTURES[architecture].multiarch}"
        python.write_text(_SCRIPT.format(qemu=qemu, libraries=libraries))
        python.chmod(0o755)
        made.rename(root)


def _download(architecture: str, packages: tuple[str, ...], folder: Path) -> list[Path]:
    """The packages and all that they depend on, fetched by an apt that knows nothing but ``architecture``."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (folder / "status").touch()
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures::": architecture,
        "APT::Sandbox::User": "",
        "Dir::State": str(folder),
        "Dir::State::status": str(folder / "status"),
        "Dir::Cache": str(folder / "cache"),
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    apt = ["apt-get", "-qq", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]
    missing = f"Python for {architecture} is not installed, and apt did not bring it"
    try:
        _run([*apt, "update"], missing)
    except CannotBeHad as error:  # one list of several suffices: a mirror in the midst of an update
        missing = str(error)
    _run([*apt, "install", "-y", "--download-only", "--no-install-recommends", *packages], missing)
    return sorted((folder / "cache/archives").glob("*.deb"))


def _run(command: list[str], failing: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_APT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBeHad(f"{failing}: {error}") from error
    if done.returncode:
        raise CannotBeHad(f"{failing}: {' '.join(done.stderr.split())[-500:] or done.returncode}")


if __name__ == "__main__":
    for each in _ARCHITECTURES:
        print(provide(each).python)
