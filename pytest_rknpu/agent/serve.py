"""Answers requests, one at a time, for ever: the contract of docs/command-lists.md.

``serve(channel)`` needs a channel with ``receive()``, which raises ``EOFError`` at its end, and ``send()``.
One that hears while a request is worked on has ``attend`` too (see ``bootstrap.Requests``).
"""

from __future__ import annotations

import math
import os
import platform
import sys
import threading
import time
from typing import Any, Callable, Dict

from . import conditions, guardian, kernel_log, lite, npu_device
from .binding import bind
from .children import child_request, run_child
from .compiler import Services
from .executor import execute
from .failures import HungFailure, ProgramFailure, as_failure
from .fields import (
    REQUIRED,
    U64,
    Blobs,
    Field,
    any_value,
    integer,
    integer_list,
    integers_by_name,
    name,
    optional,
    record,
    seconds,
    sha256,
)
from .last_words import kernel_messages, whereabouts
from .library import open_library
from .log_capture import LogCapture
from .pinning import Pinned
from .predecessor import BOOT_ID, end_predecessor, known_agent, own_identity
from .probe import probe
from .readers import Absent, Root
from .state import Handed, State
from .store import DEFAULT_FOLDER, ModelStore

AGENT_VERSION = "1.0"
"""Version of the contract that this agent speaks."""

Reply = Dict[str, Any]


def _bytes(value: Any, blobs: Blobs) -> bytes:
    if not isinstance(value, bytes):
        raise ProgramFailure("expected bytes")
    return value


def _hashes(value: Any, blobs: Blobs) -> list[str]:
    if not isinstance(value, list):
        raise ProgramFailure("expected a list of hashes")
    return [sha256(entry, blobs) for entry in value]


class Agent:
    """One session's agent: ``handle(request)`` gives the reply to one request, and never raises."""

    def __init__(self, log: LogCapture, sources: Callable[[], dict[str, str]]) -> None:
        self._log = log
        self._sources = sources
        self._thread = threading.get_ident()
        self._library: Any = None
        self._library_spec: dict[str, Any] = {}
        self._root = "/"
        self._store = ModelStore(DEFAULT_FOLDER)
        self._state: State | None = None
        self._pinned: Pinned | None = None
        self._kernel: kernel_log.Watch | None = None

    def handle(self, request: Any) -> Reply:
        """The reply to one request; an exception that nobody foresaw is told as kind ``internal``."""
        try:
            reply = self._dispatch(request)
        except Exception as error:
            reply = {"ok": False, "error": as_failure(error).as_reply()}
        reply["log"] = self._log.take()
        return reply

    def _dispatch(self, request: Any) -> Reply:
        kind = request.get("request") if isinstance(request, dict) else None
        if not isinstance(kind, str) or kind not in _REQUESTS:
            raise ProgramFailure(f"unknown request {kind!r}; there are {', '.join(_REQUESTS)}")
        fields, method = _REQUESTS[kind]
        given = {key: value for key, value in request.items() if key != "request"}
        try:
            arguments = record(given, fields, {})
        except ProgramFailure as error:
            raise ProgramFailure(f"{kind}: {error}") from None
        reply: Reply = method(self, **arguments)
        return reply

    def last_words(self) -> Reply:
        """What can be told, in another thread, of a request that is still being worked on."""
        error = HungFailure("the request is still being worked on").as_reply()
        error["at"] = whereabouts(self._thread)
        messages = kernel_messages(Root(self._root))
        return {"ok": False, "error": error, "kernel_log": messages, "log": self._log.take()}

    def _start(
        self,
        library: Any,
        root: str,
        model_cache: str,
        predecessor: dict[str, Any] | None,
        silence_s: float | None,  # the channel's business
    ) -> Reply:
        if self._state is not None:
            self._state.destroy_all()
            self._state = None
        self.close()
        ended = None if predecessor is None else end_predecessor(predecessor)
        recovered = guardian.recover(root)
        self._library = opened = open_library(library)
        self._library_spec = library
        binding = bind(opened)
        self._root, self._store, self._state = root, ModelStore(model_cache), State(binding)
        if self._kernel is not None:
            self._kernel.close()
        self._kernel = kernel_log.Watch(Root(root), npu_device.iommu(Root(root)))
        return {
            "ok": True,
            "agent": AGENT_VERSION,
            "python": platform.python_version(),
            "functions": binding.exported(),
            "pid": os.getpid(),
            "identity": own_identity(),
            "boot_id": Root(root).optional(BOOT_ID),
            "predecessor": ended,
            "clocks_recovered": recovered,
        }

    def _probe(self, library: Any, root: str | None) -> Reply:
        """Also before ``start``, and after one that failed: then the request says what to look at."""
        spec = self._library_spec if library is None else library
        if not isinstance(spec, dict):
            raise ProgramFailure("probe: library must be a dict")
        return {"ok": True, "facts": probe(self._root if root is None else root, spec)}

    def _conditions(self) -> Reply:
        return {"ok": True, "conditions": conditions.conditions(Root(self._root))}

    def _pin_clocks(self, **wishes: Any) -> Reply:
        self._started()
        if self._pinned is None:
            self._pinned = Pinned(self._root, self._sources()["guardian"])
        return {"ok": True, **self._pinned.pin(**wishes)}

    def _unpin_clocks(self) -> Reply:
        return {"ok": True, **self.close()}

    def close(self) -> Reply:
        """Put the clocks back, where they were pinned. The agent can go on afterwards."""
        pinned, self._pinned = self._pinned, None
        return pinned.unpin() if pinned is not None else {"restored": [], "why": "nothing was pinned"}

    def _has_models(self, hashes: list[str]) -> Reply:
        return {"ok": True, "present": self._store.present(hashes)}

    def _put_model(self, sha256: str, data: bytes, offset: int, size: int | None) -> Reply:
        self._store.put(sha256, data, offset, size)
        return {"ok": True}

    def abandon(self) -> None:
        """Remove what came of a model whose other parts will not come."""
        self._store.abandon()

    def _execute(self, program: Any, deadline_s: float | None, seed: int | None) -> Reply:
        if seed is not None and self._library_spec.get("kind") == "python":
            reseed = getattr(self._library.owner, "reseed", None)
            if reseed is not None:
                reseed(seed)
        ends = math.inf if deadline_s is None else time.monotonic() + deadline_s
        services = Services(self._store, self._run_child, self._log.pump, self._root, ends)
        return execute(program, self._started(), services)

    def _lite(
        self, model: str, core_masks: list[int], cases: list[dict[str, Any]], deadline_s: float
    ) -> Reply:
        self._started()
        try:
            request = lite.child_request(Root(self._root), self._store.path(model), core_masks, cases)
        except Absent as error:
            raise lite.LiteFailure(str(error)) from None
        return {"ok": True, "lite": run_child(request, self._sources(), deadline_s)}

    def _run_child(
        self, commands: list[Any], blobs: Blobs, deadline_s: float, handed: Handed
    ) -> dict[str, Any]:
        request = child_request(self._library_spec, self._store.folder, self._root, commands, blobs, handed)
        return run_child(request, self._sources(), deadline_s)

    def _reset(self) -> Reply:
        left, failed = self._started().destroy_all()
        said = self._kernel.take() if self._kernel is not None else []
        return {"ok": True, "left_behind": left, "not_destroyed": failed, "kernel_log": said}

    def _stop(self) -> Reply:
        return {"ok": True}

    def _started(self) -> State:
        if self._state is None:
            raise ProgramFailure("no library is open; send start first")
        return self._state


_REQUESTS: dict[str, Any] = {
    "start": (
        {
            "library": Field(any_value, REQUIRED),
            "root": Field(name, "/"),
            "model_cache": Field(name, DEFAULT_FOLDER),
            "predecessor": Field(optional(known_agent), None),
            "silence_s": Field(optional(seconds), None),
        },
        Agent._start,
    ),
    "probe": (
        {"library": Field(any_value, None), "root": Field(optional(name), None)},
        Agent._probe,
    ),
    "lite": (
        {
            "model": Field(sha256),
            "core_masks": Field(integer_list, [0]),
            "cases": Field(lite.check_cases),
            "deadline_s": Field(seconds, 60.0),
        },
        Agent._lite,
    ),
    "conditions": ({}, Agent._conditions),
    "pin_clocks": (
        {
            "npu_hertz": Field(optional(integer(0, U64)), None),
            "ddr_hertz": Field(optional(integer(0, U64)), None),
            "cpu_hertz": Field(integers_by_name, {}),
            "deadline_s": Field(seconds, 3600.0),
        },
        Agent._pin_clocks,
    ),
    "unpin_clocks": ({}, Agent._unpin_clocks),
    "has_models": ({"hashes": Field(_hashes)}, Agent._has_models),
    "put_model": (
        {
            "sha256": Field(sha256),
            "data": Field(_bytes),
            "offset": Field(integer(0, U64), 0),
            "size": Field(optional(integer(0, U64)), None),
        },
        Agent._put_model,
    ),
    "execute": (
        {
            "program": Field(any_value),
            "deadline_s": Field(optional(seconds), None),
            "seed": Field(optional(integer(0, U64)), None),
        },
        Agent._execute,
    ),
    "reset": ({}, Agent._reset),
    "stop": ({}, Agent._stop),
}


def own_sources() -> dict[str, str]:
    """The sources of this very package, however it came here (installed, or shipped by the bootstrap)."""
    found: dict[str, str] = sys.modules[__package__ or "rknpu_agent"].sources()
    return found


def _send(channel: Any, reply: Reply) -> None:
    try:
        channel.send(reply)
    except OSError:  # the link is gone; the next receive tells
        return
    except Exception as error:  # the reply holds what the link cannot carry; it was not begun
        channel.send({"ok": False, "error": as_failure(error).as_reply(), "log": ""})


def serve(channel: Any) -> None:
    """Answer requests until ``stop`` or the end of the channel. Takes over descriptors 1 and 2 meanwhile."""
    log = LogCapture()
    log.start()
    agent = Agent(log, own_sources)
    if hasattr(channel, "attend"):
        channel.attend(agent.last_words, log.accompany())
    try:
        while True:
            try:
                request = channel.receive()
            except EOFError:
                return
            _send(channel, agent.handle(request))
            if isinstance(request, dict) and request.get("request") == "stop":
                return
    finally:
        agent.abandon()
        agent.close()
        log.stop()
