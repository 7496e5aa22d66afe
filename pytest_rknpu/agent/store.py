"""Models on the board, by content: a file's name is the sha256 of its bytes, trusted only after hashing.

A model is written under a temporary name, flushed to disk and renamed, so that an interrupted copy never
bears a final name; a file whose bytes do not give its name (a damaged disk) counts as missing and is
overwritten. Whoever writes a temporary file holds a lock on it: one that nobody holds was left by a copy that
was cut off, and is removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import tempfile
from typing import Any

from .failures import ProgramFailure, StorageFailure

DEFAULT_FOLDER = "~/.cache/pytest-rknpu/models"
ANDROID_FOLDER = "/data/local/tmp"
SUFFIX = ".rknn"
PARTIAL = ".partial-"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# The file system cannot set room aside; then it shows on writing whether there is any.
_NOT_SET_ASIDE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class ModelStore:
    """Models in one folder, which is made when first needed. Hashes are 64 lower-case hexadecimal digits.

    The default folder stands for several: where the home folder cannot be written to, or is full, models go
    to Android's folder for such files or the one for temporary files. ``folder`` leads another store to them.
    """

    def __init__(self, folder: str) -> None:
        default = folder == DEFAULT_FOLDER
        self.folder = folder if default else os.path.abspath(os.path.expanduser(folder))
        self._folders = default_folders() if default else [self.folder]
        self._verified: dict[str, tuple[str, int, int, int]] = {}
        self._loaded: dict[str, bytes] = {}
        self._incoming: _Incoming | None = None

    def path(self, sha256: str) -> str:
        """Path of a stored model; ``ProgramFailure`` where it is not there with the right content."""
        found = self._find(sha256)
        if found is None:
            raise ProgramFailure(f"model {sha256} is not stored on the board; send it with put_model first")
        return found

    def load(self, sha256: str) -> bytes:
        """Bytes of a stored model, verified; ``ProgramFailure`` where it is not there or damaged."""
        path = self.path(sha256)
        if sha256 not in self._loaded:
            self._loaded.clear()  # one model at a time stays in the board's memory
            with open(path, "rb") as file:
                self._loaded[sha256] = file.read()
        return self._loaded[sha256]

    def present(self, hashes: list[str]) -> list[str]:
        """Those of the hashes that are stored with the right content."""
        return [sha256 for sha256 in hashes if self.holds(sha256)]

    def holds(self, sha256: str) -> bool:
        """Whether the file is there and its bytes give its name; hashed again only when the file changed."""
        return self._find(sha256) is not None

    def put(self, sha256: str, data: bytes, offset: int = 0, size: int | None = None) -> None:
        """Store a model, or the part of it that begins at ``offset``; parts come in order, up to ``size``.

        Raises ``ProgramFailure`` for bytes with another hash and parts out of order, ``StorageFailure`` where
        no disk takes them. Nothing of the model is left then.
        """
        size = len(data) if size is None else size
        if offset + len(data) > size:
            raise ProgramFailure(
                f"a part from byte {offset} to {offset + len(data)} of a model of {size} bytes"
            )
        if offset == 0:
            self._begin(sha256, size)
        incoming = self._incoming
        if incoming is None or (incoming.sha256, incoming.size, incoming.received) != (sha256, size, offset):
            self.abandon()
            raise ProgramFailure(
                f"a part of model {sha256} from byte {offset} on does not follow the one before"
            )
        try:
            incoming.add(data)
            if incoming.received == size:
                self._finish(incoming)
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError):
                raise StorageFailure(f"{_refused(incoming.folder, size, error)}; {_REMEDY}") from error
            raise

    def abandon(self) -> None:
        """Remove what has come of a model that is not whole yet."""
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.remove()

    def _find(self, sha256: str) -> str | None:
        for folder in self._folders:
            path = os.path.join(folder, sha256 + SUFFIX)
            with contextlib.suppress(OSError):
                status = os.stat(path)
                stamp = (path, status.st_ino, status.st_size, status.st_mtime_ns)
                if self._verified.get(sha256) == stamp:
                    return path
                if _digest(path) == sha256:
                    self._verified[sha256] = stamp
                    return path
        return None

    def _begin(self, sha256: str, size: int) -> None:
        """Open a temporary file, with its room set aside, in the first folder that takes it."""
        self.abandon()
        refusals = []
        for folder in self._folders:
            try:
                _make_folder(folder)
                _remove_leftovers(folder)
                self._incoming = self._reserve(folder, sha256, size)
            except OSError as error:
                refusals.append(_refused(folder, size, error))
            else:
                return
        raise StorageFailure(f"{'; '.join(refusals) or 'there is no folder to store models in'}; {_REMEDY}")

    def _reserve(self, folder: str, sha256: str, size: int) -> _Incoming:
        """Where the disk is full, models that nobody asked for in this session make room."""
        try:
            return _Incoming(folder, sha256, size)
        except OSError as error:
            if error.errno not in _NO_ROOM or not self._remove_unused(folder):
                raise
        return _Incoming(folder, sha256, size)

    def _remove_unused(self, folder: str) -> int:
        removed = 0
        for name in os.listdir(folder):
            sha256 = name[: -len(SUFFIX)]
            if name.endswith(SUFFIX) and len(sha256) == 64 and sha256 not in self._verified:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, name))
                    removed += 1
        return removed

    def _finish(self, incoming: _Incoming) -> None:
        actual = incoming.digest.hexdigest()
        if actual != incoming.sha256:
            raise ProgramFailure(
                f"the model's bytes have sha256 {actual}, not {incoming.sha256}: damaged on the way"
            )
        if not self.holds(incoming.sha256):
            incoming.keep()
            self._verified.pop(incoming.sha256, None)
        self.abandon()


class _Incoming:
    """A model of which parts have come, in a temporary file of ``folder`` that has room for all of it."""

    def __init__(self, folder: str, sha256: str, size: int) -> None:
        self.folder, self.sha256, self.size = folder, sha256, size
        self.received = 0
        self.digest: Any = hashlib.sha256()
        self._open()
        try:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, size)
        except BaseException as error:
            if isinstance(error, OSError) and error.errno in _NOT_SET_ASIDE:
                return
            self.remove()
            raise

    def _open(self) -> None:
        """A file that is ours: before it was locked, another agent could take it for a leftover."""
        while True:
            descriptor, self._path = tempfile.mkstemp(prefix=PARTIAL, dir=self.folder)
            self._file = os.fdopen(descriptor, "wb")
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.fstat(descriptor).st_nlink:
                return
            self._file.close()

    def add(self, data: bytes) -> None:
        self._file.write(data)
        self.digest.update(data)
        self.received += len(data)

    def keep(self) -> None:
        """Give the file its final name, for good: also after a power cut."""
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._path, os.path.join(self.folder, self.sha256 + SUFFIX))
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self) -> None:
        """Close the file, and remove it where it did not get its final name."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        with contextlib.suppress(OSError):  # what is still to be written finds no room
            self._file.close()


_REMEDY = "make room, or set model_cache in boards.toml to a folder that can be written to"


def default_folders() -> list[str]:
    """Where models go if nobody says otherwise, best first."""
    home = os.path.expanduser(DEFAULT_FOLDER)
    folders = [home] if os.path.isabs(home) else []  # without a home folder, ~ stays as it is
    if os.path.isdir(ANDROID_FOLDER):
        folders.append(os.path.join(ANDROID_FOLDER, "pytest-rknpu", "models"))
    with contextlib.suppress(FileNotFoundError):  # there is no folder for temporary files
        folders.append(os.path.join(tempfile.gettempdir(), f"pytest-rknpu-{os.geteuid()}"))
    return folders


def _expanded(folder: str) -> str:
    return os.path.expanduser(folder)


def _make_folder(folder: str) -> None:
    """Make ``folder``; one that somebody else can have prepared, as anybody can in /tmp, is refused."""
    parent = os.path.dirname(folder)
    os.makedirs(parent, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if os.stat(parent).st_mode & stat.S_IWOTH:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(errno.EACCES, "it is another user's")


def _remove_leftovers(folder: str) -> None:
    """Remove what copies left that were cut off; a file that is locked is another agent's, at work."""
    for name in os.listdir(folder):
        if not name.startswith(PARTIAL):
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)


def _refused(folder: str, size: int, error: OSError) -> str:
    words = f"{folder}: cannot store a model of {size} bytes ({error.strerror}"
    if error.errno in _NO_ROOM:
        with contextlib.suppress(OSError):
            room = os.statvfs(folder)
            words += f", {room.f_bavail * room.f_frsize} bytes are free"
    return words + ")"


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(2**20), b""):
            digest.update(block)
    return digest.hexdigest()
