"""The agent before this one, whose session was lost: whether it is still there, and its end.

An agent ends by itself when its link does, but not one that is frozen, hangs within the driver, or whose link
went silent without an end. It would hold the NPU, and clocks that it pinned. A process is known by its number
and the moment of its start within one run of the kernel, so that no other can be taken for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from .companion import LAST_BYTES
from .fields import U64, Blobs, Field, integer, optional, record

BOOT_ID = "proc/sys/kernel/random/boot_id"
END_S = 3.0
"""Seconds that a killed agent may take to be gone; one that hangs within the driver never is."""
_PERIOD_S = 0.02
_GUARDIAN = b"rknpu_agent/guardian"


def own_identity() -> dict[str, Any]:
    """What another agent needs to know this process by."""
    return {"pid": os.getpid(), "started": _started(os.getpid()), "boot": _boot()}


def text_or_none(value: Any, blobs: Blobs) -> str | None:
    """A text, or None."""
    return None if value is None else str(value)


def known_agent(value: Any, blobs: Blobs) -> dict[str, Any]:
    """The identity of an agent, as ``own_identity`` gave it."""
    return record(value, _FIELDS, blobs)


_FIELDS = {
    "pid": Field(integer(1, 2**31)),
    "started": Field(optional(integer(0, U64))),
    "boot": Field(text_or_none),
}


def end_predecessor(agent: dict[str, Any]) -> dict[str, Any]:
    """Kill the agent with that identity, where it is still there.

    ``fate``: "gone" (there was none), "ended", or "stuck" (killed, yet still there); ``state``: the letter of
    its state in /proc before, "waits_in": the kernel's function in which it slept; ``log``: the end of what
    its runtime had logged.
    """
    pid = agent["pid"]
    if agent["boot"] != _boot() or agent["started"] is None or _started(pid) != agent["started"]:
        return {"fate": "gone", "state": None, "waits_in": None, "log": ""}
    told = {"state": _state(pid), "waits_in": _read(pid, "wchan") or None, "log": _log(pid)}
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + END_S
    while _started(pid) == agent["started"] and _state(pid) != "Z":
        if time.monotonic() > ends:
            _let_guardian_restore(pid)
            return {"fate": "stuck", **told}
        time.sleep(_PERIOD_S)
    return {"fate": "ended", **told}


def _let_guardian_restore(parent: int) -> None:
    """It waits for the end of an agent that cannot end; a signal makes it put the clocks back now."""
    for name in os.listdir("/proc"):
        if name.isdigit() and _fields(int(name))[1:2] == [str(parent)]:
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                if _GUARDIAN in file.read():
                    os.kill(int(name), signal.SIGTERM)


def _log(pid: int) -> str:
    """The end of the anonymous file that its descriptor 1 is, where this user may read it."""
    try:
        with open(f"/proc/{pid}/fd/1", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            return file.read(LAST_BYTES).replace(b"\0", b"").decode("utf-8", "replace")
    except OSError:
        return ""


def _boot() -> str | None:
    try:
        with open(f"/{BOOT_ID}", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _fields(pid: int) -> list[str]:
    """/proc/PID/stat behind the name, which may hold anything; [] where there is no such process."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _state(pid: int) -> str | None:
    return next(iter(_fields(pid)), None)


def _started(pid: int) -> int | None:
    """Field 22 of proc(5): clock ticks from the kernel's start to the process's."""
    fields = _fields(pid)
    return int(fields[19]) if len(fields) > 19 else None


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
