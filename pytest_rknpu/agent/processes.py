"""Programs on the board that matter to a test: who has the NPU open, and whether rknn_server runs."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from .readers import Absent, Blocked, Root

_LONGEST_NAME = 15  # of /proc/PID/comm


def _pids(root: Root) -> list[str]:
    return [name for name in root.names("proc", "[1-9]*") if name.isdigit()]


def _name(root: Root, pid: str) -> str | None:
    return root.optional(f"proc/{pid}/comm")


def running(root: Root, program: str) -> int | None:
    """The number of a process of that name, the lowest; None where none runs (or /proc is masked)."""
    with contextlib.suppress(Absent, Blocked):
        for pid in sorted(_pids(root), key=int):
            if _name(root, pid) == program[:_LONGEST_NAME]:
                return int(pid)
    return None


def users_of(root: Root, nodes: list[str]) -> list[dict[str, Any]]:
    """Other processes that have one of the ``nodes`` open: ``pid`` and ``name``, by their descriptors.

    Raises ``Blocked`` where nobody was found but not every process may be looked at (it takes root).
    """
    found, hidden = [], 0
    own = os.getpid() if root.is_live else -1
    for pid in _pids(root):
        if int(pid) == own:
            continue
        try:
            targets = {root.link(f"proc/{pid}/fd/{name}") for name in root.names(f"proc/{pid}/fd", "*")}
        except Absent:  # it has ended meanwhile
            continue
        except Blocked:
            hidden += 1
            continue
        if targets & set(nodes):
            found.append({"pid": int(pid), "name": _name(root, pid) or "?"})
    if not found and hidden:
        raise Blocked(f"{hidden} processes of other users may not be looked at; run as root")
    return found
