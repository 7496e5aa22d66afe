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
from typing import Any, Callable

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

    Two messages are no requests and get no reply of their own: ``alive`` only says that the host is there,
    and ``last_words`` asks for what can be told of a request that does not come to its end; then this process
    ends.
    """

    _END = object()

    def __init__(self, channel: Any) -> None:
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._busy = False
        self._last_words: Callable[[], dict[str, Any]] = dict
        self._heard: Callable[[], None] = lambda: None
        self._end_after: Callable[[float], None] = lambda silence_s: None
        self._silence_s: float | None = None
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

    def attend(self, last_words: Callable[[], dict[str, Any]], companion: Any) -> None:
        """``last_words`` gives the answer to that message; it is called while the main thread hangs.

        ``companion`` is told of each message, and of the silence that ``start`` allows; None: there is none.
        """
        self._last_words = last_words
        if companion is not None:
            self._heard, self._end_after = companion.heard, companion.end_after
        if self._silence_s is not None:  # ``start`` was quicker
            self._end_after(self._silence_s)

    def _take(self, request: Any) -> None:
        """Called by execnet's receiving thread."""
        if request is self._END:
            if self._busy:
                os._exit(1)
            self._waiting.put(request)
            return
        self._heard()
        kind = request.get("request") if isinstance(request, dict) else None
        if kind == "last_words" and self._busy:
            self._say_last_words()
        if kind in ("alive", "last_words"):
            return
        if kind == "start" and isinstance(request.get("silence_s"), (int, float)):
            self._silence_s = request["silence_s"]
            self._end_after(request["silence_s"])
        self._waiting.put(request)

    def _say_last_words(self) -> None:
        try:
            self.send(self._last_words())
        finally:
            os._exit(1)


if __name__ == "__channelexec__":
    _channel = globals()["channel"]  # execnet puts it there
    install(json.loads(_channel.receive()))
    sys.modules[PACKAGE + ".serve"].serve(Requests(_channel))
