"""What pinning would do with each clock of a board: which files it writes, and what puts the clock back."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple

from . import guardian
from .clocks import CPUFREQ, DEVFREQ, cpu_policies, ddr_node, npu_node
from .parsers import parse_integers
from .readers import Absent, Blocked, Root

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


def wishes_for(
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
            told.append(not_pinned(clock, str(error), {"governor": None, "hertz": None}))
    try:
        asked += [(_cpufreq(policy), cpu_hertz.get(policy)) for policy in cpu_policies(root)]
    except (Absent, Blocked) as error:
        told.append(not_pinned("cpu", str(error), {"governor": None, "hertz": None}))
    for files, hertz in asked:
        before = {"governor": root.optional(files.governor), "hertz": hertz_of(root, files)}
        try:
            wishes.append(_wish(root, files, hertz, before))
        except (Absent, Blocked) as error:
            told.append(not_pinned(files.clock, str(error), before))
    return wishes, told


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


def _wish(root: Root, files: Files, limit: int | None, before: dict[str, Any]) -> Wish:
    """Raises ``Absent`` or ``Blocked`` with the reason why this clock cannot be pinned."""
    governor = root.read(files.governor)
    if not governor:
        raise Blocked(f"/{files.governor} is empty: nobody knows what to go back to")
    governors = (root.optional(files.governors) or "userspace").split()
    hertz, is_highest = _frequency(root, files, limit)
    undo = [(files.governor, governor)]
    if "userspace" in governors:
        if governor == "userspace":
            undo.append((files.setting, str((before["hertz"] or hertz) // files.unit)))
        writes = [(files.governor, "userspace"), (files.setting, str(hertz // files.unit))]
        return Wish(files, hertz, "userspace", writes, undo, before)
    if "performance" in governors and is_highest:  # that is where it goes
        return Wish(files, hertz, "performance", [(files.governor, "performance")], undo, before)
    raise Absent(f"/{files.governors} has no userspace: {' '.join(governors)}")


def _frequency(root: Root, files: Files, limit: int | None) -> tuple[int, bool]:
    """The highest frequency in hertz within the limit, and whether it is the highest of all.

    Where the kernel lists none, the limit itself is tried: what comes of it is read back.
    """
    listed = [step * files.unit for step in parse_integers(root.optional(files.available) or "")]
    if listed:
        allowed = [step for step in listed if limit is None or step <= limit]
        if not allowed:
            raise Absent(f"no frequency of /{files.available} is {limit} Hz or less")
        return max(allowed), max(allowed) == max(listed)
    highest = [step * files.unit for step in parse_integers(root.read(files.highest))]
    if not highest:
        raise Absent(f"/{files.available} lists no frequency, and /{files.highest} has none")
    hertz = highest[0] if limit is None else min(limit, highest[0])
    return hertz, hertz == highest[0]


def not_pinned(clock: str, reason: str, before: dict[str, Any]) -> Told:
    """What is told of a clock that was left, or put back, as it was."""
    return {
        "clock": clock,
        "pinned": False,
        "hertz": None,
        "governor": None,
        "before": before,
        "reason": reason,
    }


def hertz_of(root: Root, files: Files) -> int | None:
    """The frequency at which a clock runs; None where it cannot be read."""
    found = parse_integers(root.optional(files.current) or "")
    return found[0] * files.unit if found else None
