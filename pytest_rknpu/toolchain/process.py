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
from functools import partial
from pathlib import Path
from typing import Any

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.fork_server import child_environment, run_forked
from pytest_rknpu.toolchain.log_lines import error_lines
from pytest_rknpu.toolchain.side_by_side import RUNNING

WORKER = Path(__file__).parent / "child" / "worker.py"
BOARD_WORKER = WORKER.with_name("board_worker.py")
LOG = "build.log"
_REPLY, _STEP = "reply.json", "step.txt"
_REQUEST = "request.json"
_LONGEST_LOG = 1 << 24


class ChildFailed(ToolkitError):
    """The worker did not succeed. ``step`` is the call of the toolkit that it was in, ``words`` its own."""

    def __init__(self, message: str, *, step: str, timed_out: bool, words: str) -> None:
        super().__init__(message)
        self.step = step
        self.timed_out = timed_out
        self.words = words


def run_child(
    request: Mapping[str, Any],
    folder: Path,
    subject: str,
    deadline_s: float,
    kept_log: Path,
    worker: Path = WORKER,
) -> Mapping[str, Any]:
    """Runs the worker in ``folder``, its working directory, which also receives all it writes.

    Returns the worker's reply; ``toolkit_s`` in it is how long the toolkit's calls took, ``processor_s`` what
    they took of processors. ``subject`` says in errors what was asked for. ChildFailed: whatever kept the
    worker from success; the log is then kept as ``kept_log``.
    """
    deadline_s = max(deadline_s, 0.0)  # another process's build may have taken it all
    full = {**request, "reply": str(folder / _REPLY), "marker": str(folder / _STEP)}
    (folder / _REQUEST).write_text(json.dumps(full), encoding="utf-8")
    timed_out = False
    try:
        status = _run(worker, folder, deadline_s)
    except subprocess.TimeoutExpired:
        timed_out, step = True, _step(folder)
        reason = f"did not end within {deadline_s:.0f} s (in step {step})"
    else:
        reply = _reply(folder)
        if reply is not None and reply["ok"]:
            return reply
        step = _step(folder)
        reason = _reason(reply, status, step)
    log = _log(folder)
    words = " | ".join(error_lines(log)) or "it printed no error"
    message = f"{subject} {reason}: {words}; its whole log: {_keep(log, kept_log)}"
    raise ChildFailed(message, step=step, timed_out=timed_out, words=words)


def _run(worker: Path, folder: Path, deadline_s: float) -> int:
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
    return status


def run_fresh(worker: Path, request: Path, log: Path, temporary: Path, deadline_s: float) -> int:
    """As ``run_forked``, in a process that imports the toolkit itself; always has a status.

    ToolkitError: the system starts no process.
    """
    with log.open("wb") as output:
        try:
            child = subprocess.Popen(
                [sys.executable, "-u", str(worker), str(request)],
                cwd=request.parent,
                env={**child_environment(), "TMPDIR": str(temporary)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolkitError(
                f"this host starts no further process for RKNN-Toolkit2 ({error.strerror}): "
                "see its memory and the limit of processes (ulimit -u)"
            ) from error
        try:
            with RUNNING.one(partial(_kill, child)):
                return child.wait(timeout=max(deadline_s, 0.0))
        except BaseException:
            # Past its deadline, or Ctrl-C: nothing of the toolkit outlives the call.
            _kill(child)
            child.wait()
            raise


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)


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
    """What the toolkit printed; of very much the beginning and the end."""
    try:
        with (folder / LOG).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            log = file.read(_LONGEST_LOG // 2)
            left_out = size - _LONGEST_LOG
            if left_out > 0:
                log += f"\n... {left_out} bytes left out ...\n".encode()
                file.seek(-(_LONGEST_LOG // 2), os.SEEK_END)
            log += file.read(_LONGEST_LOG // 2)
    except FileNotFoundError:
        return ""
    return log.decode("utf-8", "replace")


def _keep(log: str, path: Path) -> str:
    """Writes the log down; returns where it is, or why it is nowhere."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log, encoding="utf-8")
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()  # half of it
        return f"not kept, as {path} cannot be written ({error.strerror})"
    return str(path)


def _reason(reply: Mapping[str, Any] | None, status: int, step: str) -> str:
    if reply is not None:
        # A ValueError of the toolkit carries a traceback as its text; the last line says why.
        message = [line for line in reply["message"].split("\n") if line.strip()][-1].strip()
        return f"failed in {reply['step']} ({message})"
    if status < 0:
        return f"died in {step} ({signal.Signals(-status).name})"
    return f"ended in {step} with status {status} and no exception"
