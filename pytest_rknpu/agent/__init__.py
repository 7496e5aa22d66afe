"""The board-side agent: all that runs on a board, with Python 3.8 and its standard library only.

This file is the host's side of it: ``sources()`` is what a session ships to the board, ``bootstrap_source()``
the text that execnet runs there first. Nothing of the rest of the package is imported by the agent.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

MODULES = (
    "bootstrap",
    "constants",
    "structures",
    "prototypes",
    "abi",
    "failures",
    "fields",
    "library",
    "binding",
    "state",
    "store",
    "compiler",
    "marshal_structures",
    "calls",
    "memory_calls",
    "resources",
    "cpu",
    "control",
    "child_operation",
    "raw_call",
    "timing",
    "load",
    "operations",
    "log_extract",
    "companion",
    "log_capture",
    "executor",
    "children",
    "parsers",
    "readers",
    "lite",
    "child_main",
    "kernel_log",
    "identity",
    "processes",
    "clocks",
    "guardian",
    "clock_wishes",
    "pinning",
    "drm_version",
    "npu_device",
    "stand_in",
    "probe",
    "conditions",
    "last_words",
    "predecessor",
    "serve",
)
"""All modules of the agent in the order of their imports."""


@lru_cache(maxsize=1)
def sources() -> dict[str, str]:
    """Module name -> source text, in import order: what the host sends to the board."""
    folder = Path(__file__).parent
    return {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}


def bootstrap_source() -> str:
    """The text for ``gateway.remote_exec``; the channel's first item is then ``sources()`` as JSON text."""
    return sources()["bootstrap"]
