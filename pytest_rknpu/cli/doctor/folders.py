"""The folders that a run writes to: can they be written, and is there room?"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_rknpu.cli.doctor.finding import HOST, Finding, Severity, note, ok, problem
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.farm.lease import lease_folder
from pytest_rknpu.toolchain.cache import cache_folder

_MIB = 1 << 20
#: Below this a build of the toolkit fails for want of room.
_TOO_LITTLE = 64 * _MIB
#: The builds and simulations of all suites take a hundred MiB or two, and models of one's own add to that.
_LITTLE = 512 * _MIB
_NEEDS_ROOM = ("cache-folder", "temporary-folder")


def folders(working: Path) -> Iterator[Finding]:
    """Leases, cache, temporary files, and where reports go."""
    yield _leases()
    try:
        yield folder("cache-folder", cache_folder(), "export RKNPU_CACHE_DIR=DIR")
    except RuntimeError:  # no home folder
        says = "this user has no home folder to keep compiled models in"
        yield problem("cache-folder", HOST, says, "export RKNPU_CACHE_DIR=DIR")
    try:
        yield folder("temporary-folder", Path(tempfile.gettempdir()), "export TMPDIR=DIR")
    except OSError as error:
        yield problem("temporary-folder", HOST, str(error), "export TMPDIR=DIR")
    here = folder("working-folder", working, "cd DIR, one that you can write to")
    yield replace(here, severity=Severity.NOTE) if here.severity is Severity.PROBLEM else here


def _leases() -> Finding:
    try:
        path = lease_folder()
    except ConfigurationError as error:
        return problem("lease-folder", HOST, str(error), "export RKNPU_LEASE_DIR=DIR, the same for all users")
    return folder("lease-folder", path, "export RKNPU_LEASE_DIR=DIR, the same for all users")


def folder(what: str, path: Path, another: str) -> Finding:
    """Write a file without a name into ``path``, or into the nearest folder above it that is there.

    ``another`` is how to choose another folder.
    """
    nearest = next((one for one in (path, *path.parents) if os.path.exists(one)), path)
    where = str(path) if nearest == path else f"{path} (to be made in {nearest})"
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(4096))
            file.flush()
        free = shutil.disk_usage(nearest).free
    except OSError as error:
        return problem(what, HOST, f"{where} cannot be written: {error.strerror or error}", another)
    room = f"{where}, {_size(free)} free"
    if what not in _NEEDS_ROOM or free >= _LITTLE:
        return ok(what, HOST, room)
    mend = f"make room there (du -xh {shlex.quote(str(nearest))} | sort -h | tail), or {another}"
    if free < _TOO_LITTLE:
        return problem(what, HOST, f"{room}: too little for a build", mend)
    return note(what, HOST, f"{room}: that may not last", mend)


def _size(count: int) -> str:
    return f"{count / _MIB / 1024:.1f} GiB" if count >= 1024 * _MIB else f"{count / _MIB:.1f} MiB"
