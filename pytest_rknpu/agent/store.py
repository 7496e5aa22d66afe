"""Models on the board, by content: a file's name is the sha256 of its bytes, trusted only after hashing.

A model is written under a temporary name, flushed to disk and renamed, so that an interrupted copy never
bears a final name; a file whose bytes do not give its name (a damaged disk) counts as missing and is
overwritten.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time

from .failures import ProgramFailure, StorageFailure

DEFAULT_FOLDER = "~/.cache/pytest-rknpu/models"
SUFFIX = ".rknn"
PARTIAL = ".partial-"
LEFTOVER_S = 3600


class ModelStore:
    """Models in one folder, which is made when first needed. Hashes are 64 lower-case hexadecimal digits."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self._verified: dict[str, tuple[int, int, int]] = {}
        self._loaded: dict[str, bytes] = {}

    def path(self, sha256: str) -> str:
        """Path of a stored model; ``ProgramFailure`` where it is not there with the right content."""
        if not self.holds(sha256):
            raise ProgramFailure(f"model {sha256} is not stored on the board; send it with put_model first")
        return self._file(sha256)

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
        try:
            status = os.stat(self._file(sha256))
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._verified.get(sha256) != stamp:
                if _digest(self._file(sha256)) != sha256:
                    return False
                self._verified[sha256] = stamp
        except OSError:
            return False
        return True

    def put(self, sha256: str, data: bytes) -> None:
        """Store a model.

        Raises ``ProgramFailure`` for bytes with another hash, ``StorageFailure`` where the disk refuses.
        """
        actual = hashlib.sha256(data).hexdigest()
        if actual != sha256:
            raise ProgramFailure(f"the model's bytes have sha256 {actual}, not {sha256}: damaged on the way")
        if self.holds(sha256):
            return
        try:
            os.makedirs(self.folder, exist_ok=True)
            self._remove_leftovers()
            self._write(sha256, data)
        except OSError as error:
            raise StorageFailure(
                f"{self.folder}: cannot store a model of {len(data)} bytes ({error.strerror}); "
                "make room or give another model_cache"
            ) from error

    def _remove_leftovers(self) -> None:
        """Remove what copies left that were cut off long ago; younger files may be another agent's."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            with contextlib.suppress(OSError):
                if name.startswith(PARTIAL) and time.time() - os.stat(path).st_mtime > LEFTOVER_S:
                    os.unlink(path)

    def _write(self, sha256: str, data: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(prefix=PARTIAL, dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._file(sha256))
        except BaseException:
            os.unlink(temporary)
            raise
        self._verified.pop(sha256, None)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)  # makes the new name itself survive a power cut
        finally:
            os.close(folder)

    def _file(self, sha256: str) -> str:
        return os.path.join(self.folder, sha256 + SUFFIX)


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(2**20), b""):
            digest.update(block)
    return digest.hexdigest()
