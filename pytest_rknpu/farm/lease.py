"""One holder per board: a file lock that the operating system frees when its holder dies.

The lock files lie in a folder that all users of the host share: ``$RKNPU_LEASE_DIR``, else
``/tmp/pytest-rknpu-leases``. That is ``/tmp`` whatever ``TMPDIR`` says, since two jobs with temporary folders
of their own must still meet. Beside each lock lies who holds it: a text for people, only the lock counts.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import filelock

from pytest_rknpu.errors import ConfigurationError, LeaseTimeout

_FOLDER_VARIABLE = "RKNPU_LEASE_DIR"
_DEFAULT_FOLDER = Path("/tmp/pytest-rknpu-leases")
_FOR_ALL_USERS = 0o666
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Holder:
    """Who holds a board: shown to those who wait. ``since`` is ISO 8601 in UTC."""

    user: str
    host: str
    pid: int
    since: str
    run_id: str
    command: str

    def __str__(self) -> str:
        who = f"{self.user}@{self.host}, process {self.pid}"
        return f"{who}, since {self.since}, run {self.run_id}: {self.command}"


def this_process(run_id: str, command: str) -> Holder:
    """The holder that this process is."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # no entry in the user data base: a container's bare uid
        user = f"uid {os.getuid()}"
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Holder(user, socket.gethostname(), os.getpid(), since, run_id, command)


def lease_folder() -> Path:
    """The shared folder, made if need be. Raises ConfigurationError where it cannot be used."""
    chosen = os.environ.get(_FOLDER_VARIABLE)
    folder = Path(chosen) if chosen else _DEFAULT_FOLDER
    try:
        folder.mkdir(parents=bool(chosen))
        # Every user of the host may lease. Not sticky: there filelock takes no lock that another user made.
        folder.chmod(0o777)
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigurationError(f"lease folder {folder}: {error}; set {_FOLDER_VARIABLE}") from None
    if folder.is_symlink() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"lease folder {folder} is not a folder that you can write to; set {_FOLDER_VARIABLE} to one "
            "that all users of the boards share"
        )
    return folder


@contextmanager
def lease(
    key: str, board: str, holder: Holder, *, wait_s: float, tell: Callable[[str], None]
) -> Iterator[None]:
    """Hold the board that ``key`` names (`Board.lease_key`), waiting for up to ``wait_s`` seconds.

    ``tell`` gets one message if there is somebody to wait for. Raises LeaseTimeout that names the holder.
    """
    path = lease_folder() / _file_name(key)
    lock = filelock.FileLock(path, mode=_FOR_ALL_USERS)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        _wait(lock, path, board, wait_s, tell)
    except OSError as error:
        raise ConfigurationError(f"board {board}: lease file {path}: {error}") from None
    try:
        _write_holder(path, json.dumps(asdict(holder)))
        yield
    finally:
        _write_holder(path, "")
        lock.release()


def holder_of(key: str) -> Holder | None:
    """Who wrote themselves down as the holder of ``key``, if anybody did."""
    return _read_holder(lease_folder() / _file_name(key))


def _wait(
    lock: filelock.BaseFileLock, path: Path, board: str, wait_s: float, tell: Callable[[str], None]
) -> None:
    tell(f"board {board} is held by {_named_holder(path)}; waiting for up to {wait_s:g} s")
    try:
        lock.acquire(timeout=wait_s, poll_interval=_POLL_SECONDS)
    except filelock.Timeout:
        raise LeaseTimeout(
            f"board {board}: still held after {wait_s:g} s by {_named_holder(path)}; wait longer with "
            "--rknpu-wait SECONDS, or end that run"
        ) from None


def _named_holder(path: Path) -> str:
    return str(_read_holder(path) or "somebody who left no name")


def _file_name(key: str) -> str:
    """Readable and unique: several keys may look alike once cut down to what a file name takes."""
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", key)[-60:].strip("_")
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.lock"


def _write_holder(lock_path: Path, text: str) -> None:
    """Write in place, so that it also works in a sticky folder, where nobody can replace another user's file.

    Failing to write it must not cost the lease, since it only informs.
    """
    path = lock_path.with_suffix(".json")
    with contextlib.suppress(OSError):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
        except FileNotFoundError:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_ALL_USERS)
            os.fchmod(descriptor, _FOR_ALL_USERS)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def _read_holder(lock_path: Path) -> Holder | None:
    """What the file says, if it is one of ours: other users can write to it, so that nothing is trusted."""
    try:
        descriptor = os.open(lock_path.with_suffix(".json"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            table = json.loads(file.read(10_000))
        words = {name: _printable(str(table[name])) for name in Holder.__dataclass_fields__}
        return Holder(**{**words, "pid": int(table["pid"])})  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _printable(text: str) -> str:
    """One line, without anything that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:300]
