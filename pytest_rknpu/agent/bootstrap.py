"""What execnet runs on the board first: it receives the agent's sources, installs them, and serves.

The host sends this file's text with ``gateway.remote_exec(text)`` and then, as the channel's first item,
``pytest_rknpu.agent.sources()`` as JSON text. Nothing has to be installed on the board.
"""

from __future__ import annotations

import json
import linecache
import os
import queue
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


class Requests:
    """An execnet channel whose end is noticed at once, also while a request is being worked on.

    Nobody waits for the reply then, while the next session may want the board: this process ends there and
    then, as if it were killed (its memory and contexts are the kernel's to free, its clocks the guardian's).
    execnet alone would let it go on for 15 seconds.
    """

    _END = object()

    def __init__(self, channel: Any) -> None:
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._busy = False
        self.send = channel.send
        channel.setcallback(self._take, endmarker=self._END)

    def receive(self) -> Any:
        """The next request; ``EOFError`` at the end of the channel."""
        self._busy = False
        request = self._waiting.get()
        self._busy = True
        if request is self._END:
            raise EOFError
        return request

    def _take(self, request: Any) -> None:
        """Called by execnet's receiving thread."""
        if request is self._END and self._busy:
            os._exit(1)
        self._waiting.put(request)


if __name__ == "__channelexec__":
    _channel = globals()["channel"]  # execnet puts it there
    install(json.loads(_channel.receive()))
    sys.modules[PACKAGE + ".serve"].serve(Requests(_channel))
