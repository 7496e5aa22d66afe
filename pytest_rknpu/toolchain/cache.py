"""Where compiled models are kept, by what went into them.

An entry is a folder that appears at once and whole (renamed into place) and that is checked file by file
before it is used: what was damaged since is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.disk import explained

_INDEX = "entry.json"
_ABANDONED_S = 7 * 24 * 3600.0


def cache_folder() -> Path:
    """``$RKNPU_CACHE_DIR``, or ``pytest-rknpu`` in the user's XDG cache folder."""
    own = os.environ.get("RKNPU_CACHE_DIR")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "pytest-rknpu"


def failed_log(key: str, root: Path | None = None) -> Path:
    """Where the log of a failed request is kept; a later failure of the same request replaces it."""
    return _base(root) / "failed" / f"{key[:24]}.log"


def _base(root: Path | None) -> Path:
    return (root or cache_folder()) / "toolkit"


def find(key: str, root: Path | None = None) -> Path | None:
    """The folder of an entry that is there and whole, else None. Nothing is written."""
    entry = _base(root) / "entries" / key
    return entry if _intact(entry) else None


def fetch(
    key: str, make: Callable[[Path], Mapping[str, Path]], deadline_s: float, root: Path | None = None
) -> tuple[Path, bool]:
    """The folder of an entry, and whether it was there.

    ``make`` is called where it is not, with an empty folder; it returns the files to keep, by their names in
    the entry. A second process that asks for the same key waits for the first. ToolkitError: it waited
    ``deadline_s``. ConfigurationError: the cache folder cannot be written, or its disk is full.
    """
    base = _base(root)
    entry = base / "entries" / key
    if _intact(entry):
        return entry, True
    with explained(base, "the cache", "RKNPU_CACHE_DIR"):
        for name in ("entries", "locks", "unfinished"):
            (base / name).mkdir(parents=True, exist_ok=True)
        with _locked(base / "locks" / f"{key}.lock", deadline_s):
            if not _intact(entry):
                _make(entry, base / "unfinished" / key, make)
                return entry, False
    return entry, True


def _make(entry: Path, workshop: Path, make: Callable[[Path], Mapping[str, Path]]) -> None:
    # Left by a process that was killed; the lock says that nobody works there now.
    shutil.rmtree(workshop, ignore_errors=True)
    for other in workshop.parent.iterdir():
        # Left too, and perhaps never asked for again; no job takes so long.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - other.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(other, ignore_errors=True)
    try:
        # Here too, before what fills a disk is cleared away.
        with explained(entry.parents[1], "the cache", "RKNPU_CACHE_DIR"):
            (workshop / "work").mkdir(parents=True)
            _publish(make(workshop / "work"), workshop / "entry", entry)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _publish(files: Mapping[str, Path], prepared: Path, entry: Path) -> None:
    prepared.mkdir()
    index: dict[str, Any] = {}
    for name, path in files.items():
        shutil.copyfile(path, prepared / name)
        index[name] = _digest(prepared / name)
    (prepared / _INDEX).write_text(json.dumps(index, indent=2, sort_keys=True), encoding="utf-8")
    shutil.rmtree(entry, ignore_errors=True)
    os.rename(prepared, entry)


def _intact(entry: Path) -> bool:
    try:
        index = json.loads((entry / _INDEX).read_text(encoding="utf-8"))
        return bool(index) and all(_digest(entry / name) == digest for name, digest in index.items())
    except (OSError, ValueError, AttributeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def _locked(path: Path, deadline_s: float) -> Iterator[None]:
    started = time.monotonic()
    try:
        with FileLock(path).acquire(timeout=deadline_s):
            yield
    except Timeout:
        waited = time.monotonic() - started
        raise ToolkitError(
            f"another process has been compiling the same model for {waited:.0f} s (lock {path}): "
            "wait for it, or end it if it hangs"
        ) from None
