"""The ``child`` step: a command list in a fresh process, whose death is a result."""

from __future__ import annotations

from typing import Any

from .compiler import Compiler, Step
from .failures import ProgramFailure


def build_child(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Check the commands now, run them in a child process when the step comes."""
    if compiler.in_child:
        raise ProgramFailure("a child cannot start another child")
    commands, deadline_s = arguments["commands"], arguments["deadline_s"]
    compiler.child_body(commands)
    run_child, blobs = compiler.services.run_child, compiler.blobs

    def step(iteration: int) -> dict[str, Any]:
        return run_child(commands, blobs, deadline_s)

    return step
