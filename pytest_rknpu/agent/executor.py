"""Runs one program against a state: compile, run, and tell what came of it as plain data."""

from __future__ import annotations

import time
from typing import Any

from .compiler import Compiler, Services, run_body
from .failures import ProgramFailure, as_failure
from .fields import Blobs
from .state import State


def execute(program: Any, state: State, services: Services, in_child: bool = False) -> dict[str, Any]:
    """The reply to ``execute`` but for its ``log``. Never raises: failures become the reply's ``error``."""
    values: dict[str, Any] = {}
    started = time.monotonic_ns()
    try:
        commands, blobs = check_program(program)
        compiler = Compiler(state, services, blobs, in_child)
        body = compiler.body(commands)
        values = compiler.values
        started = time.monotonic_ns()
        run_body(body, 0)
    except Exception as error:
        duration = time.monotonic_ns() - started
        return {"ok": False, "error": as_failure(error).as_reply(), "values": values, "duration_ns": duration}
    return {"ok": True, "values": values, "duration_ns": time.monotonic_ns() - started}


def check_program(program: Any) -> Any:
    """(commands, blobs) of a program; ``ProgramFailure`` where its outer form is wrong."""
    if not isinstance(program, dict) or set(program) - {"commands", "blobs"} or "commands" not in program:
        raise ProgramFailure("a program is a dict with 'commands' and, where needed, 'blobs'")
    commands, blobs = program["commands"], program.get("blobs", {})
    if not isinstance(commands, list):
        raise ProgramFailure("'commands' must be a list")
    if not isinstance(blobs, dict) or not all(
        isinstance(key, str) and isinstance(value, bytes) for key, value in blobs.items()
    ):
        raise ProgramFailure("'blobs' must be a dict of bytes by name")
    checked: Blobs = blobs
    return commands, checked
