"""The ``child`` step: a command list in a fresh process, whose death is a result."""

from __future__ import annotations

from typing import Any

from .compiler import Compiler, Step
from .failures import ProgramFailure


def build_child(arguments: dict[str, Any], compiler: Compiler) -> Step:
    """Check the commands now, run them in a child process when the step comes."""
    if compiler.in_child:
        raise ProgramFailure("a child cannot start another child")
    commands, deadline_s, inherits = (arguments[key] for key in ("commands", "deadline_s", "inherits"))
    for name in inherits:
        compiler.memories.use(name)
    compiler.child_body(commands, inherits)
    run_child, blobs, memories = compiler.services.run_child, compiler.blobs, compiler.state.memories

    def step(iteration: int) -> dict[str, Any]:
        handed = {name: memories[name].exported() for name in inherits}
        return run_child(commands, blobs, deadline_s, handed)

    return step
