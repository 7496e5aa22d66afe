"""Reads files below a folder that stands for ``/``, and tells "not there" from "not allowed"."""

from __future__ import annotations

import errno
import fnmatch
import os
from collections import deque
from typing import Any, Callable, Dict, Iterator

Fact = Dict[str, Any]
MAXIMUM_TEXT = 4 * 2**20
MAXIMUM_READ = 64 * 2**20
_BLOCK = 64 * 1024
_REFUSED = (errno.EACCES, errno.EPERM)
_REMEDIES = (
    (
        "sys/kernel/debug",
        "debugfs is root's: run as root, or let others in (mount -o remount,mode=0755 /sys/kernel/debug)",
    ),
    (
        "dev/kmsg",
        "run as root, or set the sysctl kernel.dmesg_restrict=0; a container needs --device /dev/kmsg and "
        "--cap-add SYSLOG",
    ),
)
_USUAL_REMEDY = "run as root, or give this user the right"


class Absent(Exception):
    """What was asked for is not on this board; the message says what was looked for."""


class Blocked(Exception):
    """It may be there, but this user may not see it; the message says what refused."""


class Root:
    """A folder that stands for ``/``. Paths are relative to it, without a leading slash."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.is_live = os.path.realpath(folder) == "/"

    def path(self, path: str) -> str:
        """The path as the operating system needs it."""
        return os.path.join(self.folder, path)

    def read_bytes(self, path: str) -> bytes:
        """The first 4 MiB of a file; raises ``Absent`` or ``Blocked``."""
        return self._read(path, _read_head)

    def read_tail(self, path: str) -> str:
        """The last 4 MiB of a text file, such as a log whose newest lines count; of 64 MiB at most."""
        return self._read(path, _read_tail).decode("utf-8", "replace")

    def _read(self, path: str, read: Callable[[int], bytes]) -> bytes:
        try:
            # Non-blocking for /dev/kmsg, which otherwise waits for the next message at its end.
            descriptor = os.open(self.path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise explained(error, path) from error
        try:
            return read(descriptor)
        except OSError as error:
            raise explained(error, path) from error
        finally:
            os.close(descriptor)

    def read(self, path: str) -> str:
        """A text file without white space around it; raises ``Absent`` or ``Blocked``."""
        return self.read_bytes(path).decode("utf-8", "replace").strip("\0 \t\r\n")

    def read_first(self, *paths: str) -> str:
        """The first of several files that can be read; else ``Blocked`` if any refused, else ``Absent``."""
        blocked: list[str] = []
        for path in paths:
            try:
                return self.read(path)
            except Absent:
                continue
            except Blocked as error:
                blocked.append(str(error))
        if blocked:
            raise Blocked("; ".join(blocked))
        raise Absent("there is none of " + ", ".join("/" + path for path in paths))

    def names(self, folder: str, *patterns: str) -> list[str]:
        """Names in a folder that match one of the patterns, sorted; raises ``Absent`` or ``Blocked``."""
        try:
            found = os.listdir(self.path(folder))
        except OSError as error:
            raise explained(error, folder) from error
        return sorted(name for name in found if any(fnmatch.fnmatchcase(name, entry) for entry in patterns))

    def optional(self, path: str) -> str | None:
        """A text file, or None where it cannot be read."""
        try:
            return self.read(path)
        except (Absent, Blocked):
            return None

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as it is written; None where it is none or may not be seen."""
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None


def blocks(descriptor: int, limit: int) -> Iterator[bytes]:
    """What can be read from a descriptor without waiting, up to about ``limit`` bytes."""
    size = 0
    while size < limit:
        try:
            data = os.read(descriptor, _BLOCK)
        except BlockingIOError:  # the end of /dev/kmsg
            return
        except BrokenPipeError:  # /dev/kmsg: records were overwritten while we read; go on with the next
            continue
        if not data:
            return
        size += len(data)
        yield data


def _read_head(descriptor: int) -> bytes:
    return b"".join(blocks(descriptor, MAXIMUM_TEXT))


def _read_tail(descriptor: int) -> bytes:
    kept: deque[bytes] = deque()
    size = 0
    for data in blocks(descriptor, MAXIMUM_READ):
        kept.append(data)
        size += len(data)
        while size - len(kept[0]) >= MAXIMUM_TEXT:
            size -= len(kept.popleft())
    return b"".join(kept)


def explained(error: OSError, path: str) -> Exception:
    """``Absent`` or ``Blocked`` for what the operating system said of a path, with what to do about it."""
    if error.errno in _REFUSED:
        remedy = next((words for prefix, words in _REMEDIES if path.startswith(prefix)), _USUAL_REMEDY)
        return Blocked(f"/{path}: {error.strerror}; {remedy}")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Absent(f"there is no /{path}")
    return Blocked(f"/{path}: {error.strerror}")


def fact(reader: Callable[..., Any], *arguments: Any) -> Fact:
    """``{"value"}`` of a reader, or ``{"absent"}``/``{"blocked"}`` with the reason that it raised."""
    try:
        return {"value": reader(*arguments)}
    except Absent as error:
        return {"absent": str(error)}
    except Blocked as error:
        return {"blocked": str(error)}
    except Exception as error:  # one odd file must not cost the other facts
        return {"blocked": f"the probe failed: {type(error).__name__}: {error}"}
