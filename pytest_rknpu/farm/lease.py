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
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import filelock

from pytest_rknpu.errors import ConfigurationError, LeaseLost, LeaseTimeout

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


class FileLease:
    """A board that is held until the block of `lease` ends."""

    def __init__(self, board: str, path: Path) -> None:
        self.board = board
        """The name of the board that it is."""
        self._path = path
        self._file = _identity(path)

    def check(self) -> None:
        """Raises LeaseLost where the lock's file is another than was locked: anybody can lock that."""
        if _identity(self._path) != self._file:
            raise LeaseLost(
                f"board {self.board}: the lease was lost: somebody removed {self._path}; let that folder "
                "alone while boards are in use"
            )


@contextmanager
def lease(
    keys: Mapping[str, str], holder: Holder, *, wait_s: float, tell: Callable[[str], None]
) -> Iterator[FileLease]:
    """Hold the first free one of the boards: ``keys`` has a key (`Board.lease_key`) by the name of each.

    ``tell`` gets one message if there is somebody to wait for, for up to ``wait_s`` seconds; they do not
    count while a worker of the same run holds one of the boards, since it will be done. Raises LeaseTimeout
    that names the holders.
    """
    locks = {board: filelock.FileLock(_path_of(key), mode=_FOR_ALL_USERS) for board, key in keys.items()}
    board = _first_free(locks) or _wait(locks, holder, wait_s, tell)
    path = Path(locks[board].lock_file)
    try:
        _write_holder(path, json.dumps(asdict(holder)))
        yield FileLease(board, path)
    finally:
        _write_holder(path, "")
        locks[board].release()


def holder_of(key: str) -> Holder | None:
    """Who wrote themselves down as the holder of ``key``, if anybody did."""
    return _read_holder(_path_of(key))


Locks = Mapping[str, filelock.BaseFileLock]


def _first_free(locks: Locks) -> str | None:
    """Lock one of them; the name of its board."""
    for board, lock in locks.items():
        try:
            lock.acquire(timeout=0)
            return board
        except filelock.Timeout:
            continue
        except OSError as error:
            raise ConfigurationError(f"board {board}: lease file {lock.lock_file}: {error}") from None
    return None


def _wait(locks: Locks, ours: Holder, wait_s: float, tell: Callable[[str], None]) -> str:
    deadline = time.monotonic() + wait_s
    boards = " and ".join(f"board {board} is held by {_named_holder(lock)}" for board, lock in locks.items())
    tell(f"{boards}; waiting for up to {wait_s:g} s")
    while (remaining := deadline - time.monotonic()) > 0:
        time.sleep(min(_POLL_SECONDS, remaining))
        if board := _first_free(locks):
            return board
        if any(_is_of_the_run(lock, ours) for lock in locks.values()):
            deadline = time.monotonic() + wait_s
    still = "; ".join(
        f"board {board}: still held after {wait_s:g} s by {_named_holder(lock)}"
        for board, lock in locks.items()
    )
    raise LeaseTimeout(f"{still}; wait longer with --rknpu-wait SECONDS, or end that run")


def _is_of_the_run(lock: filelock.BaseFileLock, ours: Holder) -> bool:
    holder = _read_holder(Path(lock.lock_file))
    return holder is not None and holder.run_id == ours.run_id and holder.pid != ours.pid


def _named_holder(lock: filelock.BaseFileLock) -> str:
    return str(_read_holder(Path(lock.lock_file)) or "somebody who left no name")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at ``path``; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _path_of(key: str) -> Path:
    return lease_folder() / _file_name(key)


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
