"""A machine with one emulated NPU: two users at once are noticed, as a farm must never let that happen.

Only where ``$RKNPU_EMULATED_MACHINE`` names a lock file: an sshd that plays a board sets it for its sessions.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

MACHINE_VARIABLE = "RKNPU_EMULATED_MACHINE"
_OURS_VARIABLE = "RKNPU_EMULATED_MACHINE_OURS"
# An agent whose link was cut ends by itself, but not at once; nothing runs while the next one waits for it.
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


class UsedTwice(RuntimeError):
    """Another process uses this machine's NPU."""


def occupy() -> None:
    """Take the machine for this process and its children, until they end.

    Raises UsedTwice where another still has it after five seconds; that is also written to the file
    ``$RKNPU_EMULATED_MACHINE.twice``, should nobody look at the error.
    """
    machine = os.environ.get(MACHINE_VARIABLE)
    if not machine or os.environ.get(_OURS_VARIABLE) == machine:
        return
    descriptor = os.open(machine, os.O_RDWR | os.O_CREAT, 0o666)  # never closed: the lock is the process's
    deadline = time.monotonic() + _GRACE_SECONDS
    while not _locked(descriptor):
        if time.monotonic() >= deadline:
            _report(machine, descriptor)
        time.sleep(_POLL_SECONDS)
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    os.environ[_OURS_VARIABLE] = machine


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _report(machine: str, descriptor: int) -> None:
    holder = os.pread(descriptor, 20, 0).decode(errors="replace") or "unknown"
    text = f"emulated machine {machine} is used twice: by process {holder}, and by process {os.getpid()}"
    with Path(f"{machine}.twice").open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    raise UsedTwice(text)
