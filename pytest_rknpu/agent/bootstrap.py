"""What execnet runs on the board first: it receives the agent's sources, installs them, and serves.

The host sends this file's text with ``gateway.remote_exec(text)`` and then, as the channel's first item,
``pytest_rknpu.agent.sources()`` as JSON text. Nothing has to be installed on the board.
"""

from __future__ import annotations

import json
import linecache
import sys
import types
from typing import Any

PACKAGE = "rknpu_agent"


def install(sources: dict[str, str]) -> None:
    """Make the modules of ``sources`` (name -> text, in import order) importable as ``rknpu_agent``."""
    package: Any = types.ModuleType(PACKAGE)
    package.__path__ = []
    package.sources = lambda: sources
    sys.modules[PACKAGE] = package
    for name, text in sources.items():
        if name == "bootstrap":
            continue
        full_name = PACKAGE + "." + name
        file_name = "<" + PACKAGE + "/" + name + ".py>"
        module = types.ModuleType(full_name)
        module.__package__ = PACKAGE
        module.__file__ = file_name
        # Registered before it runs: dataclasses look their module up. The cache gives tracebacks their lines.
        sys.modules[full_name] = module
        linecache.cache[file_name] = (len(text), None, text.splitlines(True), file_name)
        exec(compile(text, file_name, "exec"), module.__dict__)
        setattr(package, name, module)


if __name__ == "__channelexec__":
    _channel = globals()["channel"]  # execnet puts it there
    install(json.loads(_channel.receive()))
    sys.modules[PACKAGE + ".serve"].serve(_channel)
