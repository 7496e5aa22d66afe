"""One request to the toolkit: a process in a folder of its own, with a deadline, whatever becomes of it.

The process is forked from one that has imported the toolkit already, or where that cannot be had starts anew.

A native abort, an exit without an exception, an exception, a return value of -1 and a passed deadline all end
in one ToolkitError, ChildFailed, with the toolkit's own last words.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.fork_server import run_forked
from pytest_rknpu.toolchain.log_lines import error_lines

WORKER = Path(__file__).parent / "child" / "worker.py"
BOARD_WORKER = WORKER.with_name("board_worker.py")
LOG = "build.log"
_REPLY, _STEP = "reply.json", "step.txt"
_REQUEST = "request.json"


class ChildFailed(ToolkitError):
    """The worker did not succeed. ``step`` is the call of the toolkit that it was in, ``words`` its own."""

    def __init__(self, message: str, *, step: str, timed_out: bool, words: str) -> None:
        super().__init__(message)
        self.step = step
        self.timed_out = timed_out
        self.words = words


@dataclass(frozen=True)
class Ended:
    """How the child ended: its reply, or None where it left none."""

    reply: Mapping[str, Any] | None
    status: int
    step: str
    log: str


def run_child(
    request: Mapping[str, Any],
    folder: Path,
    subject: str,
    deadline_s: float,
    kept_log: Path,
    worker: Path = WORKER,
) -> Mapping[str, Any]:
    """Runs the worker in ``folder``, its working directory, which also receives all it writes.

    Returns the worker's reply. ``subject`` says in errors what was asked for. ChildFailed: whatever kept the
    worker from success; the log is then kept as ``kept_log``.
    """
    full = {**request, "reply": str(folder / _REPLY), "marker": str(folder / _STEP)}
    (folder / _REQUEST).write_text(json.dumps(full), encoding="utf-8")
    try:
        ended = _run(worker, folder, deadline_s)
    except subprocess.TimeoutExpired:
        step, timed_out, log = _step(folder), True, _log(folder)
        reason = f"did not end within {deadline_s:.0f} s (in step {step})"
    else:
        if ended.reply is not None and ended.reply["ok"]:
            return ended.reply
        step, timed_out, log = ended.step, False, ended.log
        reason = _reason(ended)
    kept_log.parent.mkdir(parents=True, exist_ok=True)
    kept_log.write_text(log, encoding="utf-8")
    words = " | ".join(error_lines(log)) or "it printed no error"
    message = f"{subject} {reason}: {words}; its whole log: {kept_log}"
    raise ChildFailed(message, step=step, timed_out=timed_out, words=words)


def _run(worker: Path, folder: Path, deadline_s: float) -> Ended:
    given = set(folder.iterdir())
    end = time.monotonic() + deadline_s
    # Until the worker says more: what it waits for first is the import, in its process or in the server's.
    (folder / _STEP).write_text("import", encoding="utf-8")
    temporary = folder / "temporary"
    temporary.mkdir()
    status = run_forked(worker, folder / _REQUEST, folder / LOG, temporary, deadline_s)
    if status is None:
        _clear(folder, given)
        temporary.mkdir()
        status = run_fresh(worker, folder / _REQUEST, folder / LOG, temporary, end - time.monotonic())
    return Ended(_reply(folder), status, _step(folder), _log(folder))


def run_fresh(worker: Path, request: Path, log: Path, temporary: Path, deadline_s: float) -> int:
    """As ``run_forked``, in a process that imports the toolkit itself; always has a status."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-u", str(worker), str(request)],
            cwd=request.parent,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return child.wait(timeout=max(deadline_s, 0.0))
        except BaseException:
            # Past its deadline, or Ctrl-C: nothing of the toolkit outlives the call.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise


def _clear(folder: Path, given: set[Path]) -> None:
    """Removes what a job left that its server did not bring to an end: the next process starts as it did."""
    for path in set(folder.iterdir()) - given:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _reply(folder: Path) -> Mapping[str, Any] | None:
    try:
        reply: Mapping[str, Any] = json.loads((folder / _REPLY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return reply


def _step(folder: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return (folder / _STEP).read_text(encoding="utf-8")
    return "start"


def _log(folder: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return (folder / LOG).read_text(encoding="utf-8", errors="replace")
    return ""


def _reason(ended: Ended) -> str:
    if ended.reply is not None:
        # A ValueError of the toolkit carries a traceback as its text; the last line says why.
        message = [line for line in ended.reply["message"].split("\n") if line.strip()][-1].strip()
        return f"failed in {ended.reply['step']} ({message})"
    if ended.status < 0:
        return f"died in {ended.step} ({signal.Signals(-ended.status).name})"
    return f"ended in {ended.step} with status {ended.status} and no exception"
