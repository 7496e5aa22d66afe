"""What an agent says of a request that does not come to its end: where it is, and the kernel's last messages.

It is said by another thread than the one that hangs, and reads nothing that waits for the NPU's driver.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Iterator, Tuple

from .kernel_log import about_the_npu, read_live
from .readers import Absent, Blocked, Root

LAST_MESSAGES = 20

_COUNTING = {("compiler", "run_body"), ("control", "repeat_step"), ("control", "threads_step")}
_GROUP = ("control", "_run_group")

Place = Tuple[str, Any]
"""A function that counts its way through a program, and its variables."""


def whereabouts(thread: int) -> list[int]:
    """The path of command indexes (as in a failure's ``at``) at which ``thread`` is; [] outside a program."""
    frames = sys._current_frames()
    return _path(frames.get(thread), frames)


def _path(frame: FrameType | None, frames: dict[int, FrameType]) -> list[int]:
    path: list[int] = []
    for function, variables in _outermost_first(frame):
        if function == "run_body":
            path.append(variables["index"])
        elif function == "repeat_step":
            path += [variables["number"], variables["index"]]
        elif function == "threads_step":
            path += _group(frames)
    return path


def _group(frames: dict[int, FrameType]) -> list[int]:
    """The first group of a ``threads`` command that has not ended, and the path within it."""
    groups = []
    for frame in frames.values():
        for function, variables in _outermost_first(frame):
            if function == "_run_group":
                groups.append([variables["number"], *_path(frame, frames)])
    return min(groups, default=[])


def _outermost_first(frame: FrameType | None) -> Iterator[Place]:
    found: list[Place] = []
    while frame is not None:
        module, function = frame.f_globals.get("__name__", "").rpartition(".")[2], frame.f_code.co_name
        if (module, function) in _COUNTING or (module, function) == _GROUP:
            found.append((function, frame.f_locals))
        frame = frame.f_back
    return reversed(found)


def kernel_messages(root: Root) -> dict[str, Any]:
    """A fact: the kernel's last messages about the NPU, or about anything where there is none."""
    try:
        records = read_live(root)
    except Absent as error:
        return {"absent": str(error)}
    except Blocked as error:
        return {"blocked": str(error)}
    chosen = about_the_npu(records) or records
    return {"value": [str(record["text"]) for record in chosen[-LAST_MESSAGES:]]}
