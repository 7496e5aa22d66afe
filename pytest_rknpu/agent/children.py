"""Runs a command list in a fresh process and tells how that ended.

The child gets its sources and program through an anonymous file as its standard input (a pipe could block
for ever if the child hangs before reading), and answers through a pipe, whose end also tells of its death at
once. Its descriptors 1 and 2 are a log file that the parent owns, so that the last words of a crash are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

from .failures import LibraryFailure
from .fields import Blobs
from .log_capture import LogFile, anonymous_file
from .state import Handed

PERIOD_S = 0.2
"""Seconds between two looks at the child's log, and at a child whose pipe somebody else keeps open."""
REAP_S = 5.0
"""Seconds that a killed child may take to die; one that hangs inside the driver may never do."""

LAUNCH = (
    "import marshal,sys\n"
    "load=marshal.load(sys.stdin.buffer)\n"
    "sys.path[:]=load['path']\n"
    "space={'__name__':'rknpu_agent_bootstrap'}\n"
    "exec(compile(load['sources']['bootstrap'],'<rknpu_agent/bootstrap.py>','exec'),space)\n"
    "space['install'](load['sources'])\n"
    "sys.modules['rknpu_agent.child_main'].main(load)\n"
)
"""What the child's interpreter runs; the rest comes through its standard input."""


def child_request(
    library: dict[str, Any],
    model_cache: str,
    root: str,
    commands: list[Any],
    blobs: Blobs,
    handed: Handed | None = None,
) -> dict[str, Any]:
    """What a child needs to know: which library to open, where models lie, what to run, and the memories
    that it is handed.
    """
    return {
        "library": library,
        "model_cache": model_cache,
        "root": root,
        "commands": commands,
        "blobs": blobs,
        "handed": handed or {},
    }


def run_child(request: dict[str, Any], sources: dict[str, str], deadline_s: float) -> dict[str, Any]:
    """Run a request (see ``child_request``) in a child process; returns the value that ``child`` saves.

    Whatever happens to the child, it and its process group are killed and reaped afterwards.
    """
    if not sys.executable:
        raise LibraryFailure("this Python does not know its own executable; a child cannot be started")
    ends = time.monotonic() + deadline_s
    log = LogFile()
    reading, writing = os.pipe()
    try:
        try:
            process = _start(request, sources, log, writing)
        finally:
            os.close(writing)
        try:
            data = _collect(process, reading, log, ends)
        finally:
            code = _end(process)
        return _outcome(code, data, log)
    finally:
        os.close(reading)
        log.close()


def _start(
    request: dict[str, Any], sources: dict[str, str], log: LogFile, writing: int
) -> subprocess.Popen[bytes]:
    load = {
        "sources": sources,
        "path": list(sys.path),
        "result": writing,
        "parent": os.getpid(),
        "request": request,
    }
    with os.fdopen(anonymous_file("rknpu-child"), "w+b") as stdin:
        marshal.dump(load, stdin)
        stdin.flush()
        stdin.seek(0)
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCH],
            stdin=stdin,
            stdout=log.descriptor,
            stderr=log.descriptor,
            pass_fds=[writing, *(fd for fd, _ in request.get("handed", {}).values() if fd >= 0)],
            start_new_session=True,
        )


def _collect(process: subprocess.Popen[bytes], reading: int, log: LogFile, ends: float) -> bytes | None:
    """What came through the pipe when the child is dead; None where the deadline passed first."""
    parts: list[bytes] = []
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    period_s = PERIOD_S
    while True:
        left = ends - time.monotonic()
        if left <= 0:
            return None
        # Look for death before the pipe: what a dead child wrote is all there by now.
        dead = _has_died(process)
        if poll.poll(0 if dead else min(left, period_s) * 1000):
            data = os.read(reading, 2**20)
            if data:
                parts.append(data)
                continue
            # The pipe closes a moment before the child is dead, and a child may close it and go on.
            poll.unregister(reading)
            period_s = 0.001
        if dead:
            return b"".join(parts)
        log.pump()


def _has_died(process: subprocess.Popen[bytes]) -> bool:
    """Whether the child is dead, leaving it unreaped: its number then cannot become another process's."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes]) -> int | None:
    """Kill the child's process group and reap the child; its exit code, None where it cannot be killed."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.wait(REAP_S)
    except subprocess.TimeoutExpired:
        return None


def _outcome(code: int | None, data: bytes | None, log: LogFile) -> dict[str, Any]:
    result: dict[str, Any] = {"outcome": "timeout", "reply": None, "signal": None, "exit": None}
    if data is not None and code is not None:
        reply = result["reply"] = unpack_reply(data)
        result["outcome"] = "died"
        if code < 0:
            result["signal"] = signal_name(-code)
        else:
            result["exit"] = code
        if reply is not None and code == 0:
            result["outcome"] = "done" if reply["ok"] else "error"
    result["log"] = log.take()
    if code is None:
        result["log"] += "[the child cannot be killed: it hangs inside the kernel]\n"
    return result


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGSEGV; "signal 64" for one without."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def pack_reply(reply: dict[str, Any]) -> bytes:
    """A reply as bytes behind their own hash: what a dying child wrote in part does not look whole."""
    data = marshal.dumps(reply)
    return hashlib.sha256(data).digest() + data


def unpack_reply(data: bytes) -> dict[str, Any] | None:
    """The reply, or None where it is not whole."""
    digest, body = data[:32], data[32:]
    if hashlib.sha256(body).digest() != digest:
        return None
    reply: dict[str, Any] = marshal.loads(body)
    return reply
