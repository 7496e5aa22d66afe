"""Pins clocks for a measurement: governor ``userspace``, set, read back; a guardian puts them back (see
there).

What can be pinned differs by kernel and by right. Each clock is told by itself: pinned at so many hertz, or
why not. A clock that could not be pinned is put back at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from typing import Any

from . import guardian
from .clock_wishes import Told, Wish, hertz_of, not_pinned, wishes_for
from .failures import ClockFailure
from .log_capture import anonymous_file
from .readers import Root

ANSWER_S = 20.0
"""Seconds for the guardian to start, or to restore; a small board's Python takes one or two to start."""
SETTLE_S = 1.0
"""Seconds until a clock has to read back what was set."""
_PERIOD_S = 0.01

_LAUNCH = (
    "import sys;"
    "exec(compile(sys.stdin.read(),'<rknpu_agent/guardian.py>','exec'),{'__name__':'__guardian__'})"
)


class Pinned:
    """The clocks of one board, from ``pin`` to ``unpin``. ``source`` is the text of the guardian's module."""

    def __init__(self, root: str, source: str) -> None:
        self._root = Root(root)
        self._source = source
        self._hold = guardian.Hold(root, "agent")
        self._guardian: _Guardian | None = None
        self._undo: list[guardian.Step] = []

    def pin(
        self, npu_hertz: int | None, ddr_hertz: int | None, cpu_hertz: dict[str, int], deadline_s: float
    ) -> dict[str, Any]:
        """Pin every clock that there is, each to its highest frequency that is not above the given one.

        None, and a policy that is not named, mean the highest there is. After ``deadline_s`` all is put back
        in any case. Raises ``ClockFailure`` where they are pinned already, and where no guardian can be had:
        then nothing was changed.
        """
        if self._guardian is not None:
            raise ClockFailure("the clocks are pinned already; unpin them first")
        if not self._hold.take():
            raise ClockFailure(guardian.REFUSED)
        try:
            self._guardian = _Guardian(self._source, self._root.folder, deadline_s)
            recovered = self._guardian.ask("recovered")["recovered"]
            wishes, told = wishes_for(self._root, npu_hertz, ddr_hertz, cpu_hertz)
            self._undo = [step for wish in wishes for step in wish.undo]
            self._guardian.ask("armed", restore=self._undo)
            done = [_pin(self._root, wish) for wish in wishes]
            # A clock that could not be pinned is put back already, but for what failed of that.
            self._undo = [step for _, left in done for step in left]
            self._guardian.ask("armed", restore=self._undo)
            told += [what for what, _ in done]
        except BaseException:
            self.unpin()
            raise
        return {"clocks": told, "recovered": recovered}

    def unpin(self) -> dict[str, Any]:
        """Put back what was there before: ``{"restored": [..], "why"}``; by itself where the guardian is
        dead.
        """
        keeper, self._guardian = self._guardian, None
        if keeper is None:
            self._hold.release()
            return {"restored": [], "why": "nothing was pinned"}
        try:
            return keeper.ask("restored", done=True)
        except ClockFailure as failure:
            restored = guardian.restore(self._root.folder, self._undo)
            plan = guardian.Plan(self._root.folder)
            if plan.lock():  # else another agent has taken over since
                plan.end(guardian.not_restored(self._undo, restored))
            return {"restored": restored, "why": str(failure)}
        finally:
            self._undo = []
            keeper.end()
            self._hold.release()


class _Guardian:
    """The process, and the pipes to and from it."""

    def __init__(self, source: str, root: str, deadline_s: float) -> None:
        if not sys.executable:
            raise ClockFailure("this Python does not know its own executable; no guardian can be started")
        reading, self._to = os.pipe()
        self._from, writing = os.pipe()
        command = [sys.executable, "-I", "-c", _LAUNCH, str(reading), str(writing), root, str(deadline_s)]
        try:
            self._process = _start(command, source, [reading, writing])
        except OSError as error:
            os.close(self._to)
            os.close(self._from)
            raise ClockFailure(f"no guardian of the clocks can be started: {error.strerror}") from None
        finally:
            os.close(reading)
            os.close(writing)
        self._lines = guardian.Lines(self._from)

    def ask(self, key: str, **message: Any) -> dict[str, Any]:
        """Send a message, if there is any, and return the answer that has ``key``; else ``ClockFailure``."""
        if message:
            with contextlib.suppress(BrokenPipeError):  # what it said before it ended can still be read
                os.write(self._to, json.dumps(message).encode() + b"\n")
        ends = time.monotonic() + ANSWER_S
        while True:
            line = self._lines.next(ends - time.monotonic())
            if not line:
                raise ClockFailure("the guardian of the clocks does not answer")
            answer: dict[str, Any] = json.loads(line)
            if "refused" in answer:
                raise ClockFailure(str(answer["refused"]))
            if key in answer:
                return answer

    def end(self) -> None:
        """Close the pipes, at which it ends."""
        os.close(self._to)
        os.close(self._from)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ANSWER_S)


def _start(command: list[str], source: str, descriptors: list[int]) -> subprocess.Popen[bytes]:
    with os.fdopen(anonymous_file("rknpu-guardian"), "w+b") as stdin:
        stdin.write(source.encode())
        stdin.flush()
        stdin.seek(0)
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=descriptors,
            start_new_session=True,  # what ends the agent's session shall not end the guardian
            cwd="/",
        )


def _pin(root: Root, wish: Wish) -> tuple[Told, list[guardian.Step]]:
    """What came of it, and what is to be done to put the clock back."""
    reason = None
    path = ""
    try:
        for path, value in wish.steps:
            guardian.write(root.path(path), value)
        reason = _read_back(root, wish)
    except OSError as error:
        reason = f"/{path}: {error.strerror}; run as root or give this user the right"
    if reason is not None:
        return _put_back(root, wish, reason)
    told = {
        "clock": wish.files.clock,
        "pinned": True,
        "hertz": wish.hertz,
        "governor": wish.governor,
        "before": wish.before,
        "reason": None,
    }
    return told, wish.undo


def _put_back(root: Root, wish: Wish, reason: str) -> tuple[Told, list[guardian.Step]]:
    """A clock that could not be pinned is put back at once; what failed of that is still to be done."""
    if _is_as_before(root, wish):
        return not_pinned(wish.files.clock, reason, wish.before), []
    done = guardian.restore(root.folder, wish.undo)
    left = guardian.not_restored(wish.undo, done)
    problems = [f"{told['path']}: {told['error']}" for told in done if told["error"]]
    if problems:
        reason = f"{reason}; and it is not as it was: {'; '.join(problems)}"
    return not_pinned(wish.files.clock, reason, wish.before), left


def _is_as_before(root: Root, wish: Wish) -> bool:
    governor, before = root.optional(wish.files.governor), wish.before
    # Under other governors the frequency moves by itself.
    return governor == before["governor"] and (
        governor != "userspace" or hertz_of(root, wish.files) == before["hertz"]
    )


def _read_back(root: Root, wish: Wish) -> str | None:
    """Why what was set is not what is; None where it is."""
    ends = time.monotonic() + SETTLE_S
    while True:
        governor, hertz = root.optional(wish.files.governor), hertz_of(root, wish.files)
        if governor == wish.governor and hertz == wish.hertz:
            return None
        if time.monotonic() > ends:
            return f"reads back {governor} at {hertz} Hz, not {wish.governor} at {wish.hertz} Hz"
        time.sleep(_PERIOD_S)
