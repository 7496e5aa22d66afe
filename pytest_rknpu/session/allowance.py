"""How long a command list may take, where nobody says: by what it does and how often.

Generous: it bounds how late a hung NPU is noticed, and a slow board must not be taken for one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Command = Mapping[str, Any]
Blobs = Mapping[str, bytes]

BASE_SECONDS = 60.0
LONGEST_SECONDS = 6 * 3600.0

# Seconds for each time that a command runs.
_EACH: Mapping[str, float] = {"run": 0.1, "init": 1.0, "dup": 0.5, "get_outputs": 0.05, "thrash": 0.05}
_ANY_OTHER = 0.01
# The agent's default for a child, and what starting a process takes on a small board.
_CHILD_SECONDS = 20.0
_START_SECONDS = 20.0


def deadline_for(program: Mapping[str, Any]) -> float:
    """Seconds within which a program (plain data) ends on any board that works."""
    return min(BASE_SECONDS + _seconds(program["commands"], program.get("blobs", {})), LONGEST_SECONDS)


def child_deadline_for(program: Mapping[str, Any]) -> float:
    """Seconds within which a program ends in a process of its own, its start apart."""
    return min(_CHILD_SECONDS + _seconds(program["commands"], program.get("blobs", {})), LONGEST_SECONDS)


def _seconds(commands: Sequence[Command], blobs: Blobs) -> float:
    return sum(_seconds_of(command, blobs) for command in commands)


def _seconds_of(command: Command, blobs: Blobs) -> float:
    operation = command["op"]
    if operation == "repeat":
        return float(command["count"]) * _seconds(command["commands"], blobs)
    if operation == "threads":  # they may have to take turns
        return sum(_seconds(group, blobs) for group in command["groups"])
    if operation == "child":
        return float(command.get("deadline_s", _CHILD_SECONDS)) + _START_SECONDS
    if operation == "under_load":
        return _START_SECONDS + 2 * _seconds(command["commands"], blobs)
    if operation in ("time_runs", "time_syncs"):
        return _calls(command, blobs) * (_EACH["run"] + _seconds(command.get("before", ()), blobs))
    return _EACH.get(operation, _ANY_OTHER)


def _calls(command: Command, blobs: Blobs) -> int:
    """How many calls are timed, and made before to warm up."""
    subjects = len(command.get("contexts") or command.get("modes") or ())
    timed = command.get("count") or len(blobs.get(command.get("order") or "", b""))
    return int(timed) + int(command.get("warm_up", 0)) * subjects


def command_at(program: Mapping[str, Any], at: Sequence[int]) -> str | None:
    """The operation at a path of command indexes (docs/command-lists.md, ``at``), if there is one."""
    commands, rest, operation = program["commands"], list(at), None
    while rest:
        index = rest.pop(0)
        if not 0 <= index < len(commands):
            break
        command = commands[index]
        operation = command["op"]
        if operation == "repeat":
            rest, commands = rest[1:], command["commands"]
        elif operation == "threads":
            group = rest.pop(0) if rest else len(command["groups"])
            commands = command["groups"][group] if group < len(command["groups"]) else []
        else:
            commands = command.get("commands", [])
    return operation
