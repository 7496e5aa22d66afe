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
from typing import Any, Dict, NamedTuple

from . import guardian
from .clocks import CPUFREQ, DEVFREQ, ddr_node, npu_node
from .failures import ClockFailure
from .log_capture import anonymous_file
from .parsers import parse_integers
from .readers import Absent, Blocked, Root

ANSWER_S = 20.0
"""Seconds for the guardian to start, or to restore; a small board's Python takes one or two to start."""
SETTLE_S = 1.0
"""Seconds until a clock has to read back what was set."""
_PERIOD_S = 0.01

_LAUNCH = (
    "import sys;"
    "exec(compile(sys.stdin.read(),'<rknpu_agent/guardian.py>','exec'),{'__name__':'__guardian__'})"
)

Told = Dict[str, Any]
"""``{"clock", "pinned", "hertz", "governor", "before": {"governor", "hertz"}, "reason"}``"""


class Files(NamedTuple):
    """The files of one clock, below the root; ``unit`` is what a 1 in them means in hertz."""

    clock: str
    governor: str
    governors: str
    setting: str
    current: str
    available: str
    highest: str
    unit: int


class Wish(NamedTuple):
    """What is to be done with a clock: write ``steps``, read back ``hertz``; ``undo`` puts it back."""

    files: Files
    hertz: int
    governor: str
    steps: list[guardian.Step]
    undo: list[guardian.Step]
    before: dict[str, Any]


class Pinned:
    """The clocks of one board, from ``pin`` to ``unpin``. ``source`` is the text of the guardian's module."""

    def __init__(self, root: str, source: str) -> None:
        self._root = Root(root)
        self._source = source
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
        self._guardian = _Guardian(self._source, self._root.folder, deadline_s)
        try:
            recovered = self._guardian.ask("recovered")["recovered"]
            wishes, told = _wishes(self._root, npu_hertz, ddr_hertz, cpu_hertz)
            self._undo = [step for wish in wishes for step in wish.undo]
            self._guardian.ask("armed", restore=self._undo)
            done = [(wish, _pin(self._root, wish)) for wish in wishes]
            # What could not be pinned is as it was; trying to put it back would only fail again.
            self._undo = [step for wish, what in done if what["pinned"] for step in wish.undo]
            self._guardian.ask("armed", restore=self._undo)
            told += [what for _, what in done]
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
            return {"restored": [], "why": "nothing was pinned"}
        try:
            return keeper.ask("restored", done=True)
        except ClockFailure as failure:
            restored = guardian.restore(self._root.folder, self._undo)
            with contextlib.suppress(OSError):
                os.unlink(self._root.path(guardian.FILE))
            return {"restored": restored, "why": str(failure)}
        finally:
            self._undo = []
            keeper.end()


class _Guardian:
    """The process, and the pipes to and from it."""

    def __init__(self, source: str, root: str, deadline_s: float) -> None:
        if not sys.executable:
            raise ClockFailure("this Python does not know its own executable; no guardian can be started")
        reading, self._to = os.pipe()
        self._from, writing = os.pipe()
        command = [sys.executable, "-I", "-c", _LAUNCH, str(reading), str(writing), root, str(deadline_s)]
        try:
            with os.fdopen(anonymous_file("rknpu-guardian"), "w+b") as stdin:
                stdin.write(source.encode())
                stdin.flush()
                stdin.seek(0)
                self._process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[reading, writing],
                    start_new_session=True,  # what ends the agent's session shall not end the guardian
                    cwd="/",
                )
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


def _devfreq(clock: str, node: str) -> Files:
    folder = f"{DEVFREQ}/{node}"
    return Files(
        clock=clock,
        governor=f"{folder}/governor",
        governors=f"{folder}/available_governors",
        setting=f"{folder}/userspace/set_freq",
        current=f"{folder}/cur_freq",
        available=f"{folder}/available_frequencies",
        highest=f"{folder}/max_freq",
        unit=1,
    )


def _cpufreq(policy: str) -> Files:
    folder = f"{CPUFREQ}/{policy}"
    return Files(
        clock=f"cpu {policy}",
        governor=f"{folder}/scaling_governor",
        governors=f"{folder}/scaling_available_governors",
        setting=f"{folder}/scaling_setspeed",
        current=f"{folder}/scaling_cur_freq",
        available=f"{folder}/scaling_available_frequencies",
        highest=f"{folder}/cpuinfo_max_freq",
        unit=1000,
    )


def _wishes(
    root: Root, npu_hertz: int | None, ddr_hertz: int | None, cpu_hertz: dict[str, int]
) -> tuple[list[Wish], list[Told]]:
    """What is to be done with each clock; and those that cannot be pinned, with the reason."""
    wishes: list[Wish] = []
    told: list[Told] = []
    asked: list[tuple[Files, int | None]] = []
    for clock, find, hertz in (("npu", npu_node, npu_hertz), ("ddr", ddr_node, ddr_hertz)):
        try:
            asked.append((_devfreq(clock, find(root)), hertz))
        except (Absent, Blocked) as error:
            told.append(_not_pinned(clock, str(error), {"governor": None, "hertz": None}))
    try:
        policies = root.names(CPUFREQ, "policy*")
    except (Absent, Blocked):
        policies = []
    if not policies:
        reason = f"/{CPUFREQ} has no policy"
        told.append(_not_pinned("cpu", reason, {"governor": None, "hertz": None}))
    asked += [(_cpufreq(policy), cpu_hertz.get(policy)) for policy in policies]
    for files, hertz in asked:
        before = {"governor": root.optional(files.governor), "hertz": _hertz(root, files)}
        try:
            wishes.append(_wish(root, files, hertz, before))
        except (Absent, Blocked) as error:
            told.append(_not_pinned(files.clock, str(error), before))
    return wishes, told


def _wish(root: Root, files: Files, limit: int | None, before: dict[str, Any]) -> Wish:
    """Raises ``Absent`` or ``Blocked`` with the reason why this clock cannot be pinned."""
    governor = root.read(files.governor)
    governors = (root.optional(files.governors) or "userspace").split()
    steps = parse_integers(root.optional(files.available) or "") or parse_integers(root.read(files.highest))
    allowed = [step * files.unit for step in steps if limit is None or step * files.unit <= limit]
    if not allowed:
        raise Absent(f"/{files.available}: no frequency is {limit} Hz or less")
    undo = [(files.governor, governor)]
    if "userspace" in governors:
        hertz = max(allowed)
        if governor == "userspace":
            undo.append((files.setting, str((before["hertz"] or hertz) // files.unit)))
        writes = [(files.governor, "userspace"), (files.setting, str(hertz // files.unit))]
        return Wish(files, hertz, "userspace", writes, undo, before)
    if "performance" in governors and len(allowed) == len(steps):  # it goes to the highest there is
        return Wish(files, max(allowed), "performance", [(files.governor, "performance")], undo, before)
    raise Absent(f"/{files.governors} has no userspace: {' '.join(governors)}")


def _pin(root: Root, wish: Wish) -> Told:
    reason = None
    path = ""
    try:
        for path, value in wish.steps:
            guardian.write(root.path(path), value)
        reason = _read_back(root, wish)
    except OSError as error:
        reason = f"/{path}: {error.strerror}; run as root or give this user the right"
    if reason is not None:
        guardian.restore(root.folder, wish.undo)
        return _not_pinned(wish.files.clock, reason, wish.before)
    return {
        "clock": wish.files.clock,
        "pinned": True,
        "hertz": wish.hertz,
        "governor": wish.governor,
        "before": wish.before,
        "reason": None,
    }


def _not_pinned(clock: str, reason: str, before: dict[str, Any]) -> Told:
    return {
        "clock": clock,
        "pinned": False,
        "hertz": None,
        "governor": None,
        "before": before,
        "reason": reason,
    }


def _read_back(root: Root, wish: Wish) -> str | None:
    """Why what was set is not what is; None where it is."""
    ends = time.monotonic() + SETTLE_S
    while True:
        governor, hertz = root.optional(wish.files.governor), _hertz(root, wish.files)
        if governor == wish.governor and hertz == wish.hertz:
            return None
        if time.monotonic() > ends:
            return f"reads back {governor} at {hertz} Hz, not {wish.governor} at {wish.hertz} Hz"
        time.sleep(_PERIOD_S)


def _hertz(root: Root, files: Files) -> int | None:
    found = parse_integers(root.optional(files.current) or "")
    return found[0] * files.unit if found else None
