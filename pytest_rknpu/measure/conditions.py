"""Were the conditions of a measurement what they have to be? From readings of the agent (plain data), in
words.

A reading is the ``conditions`` of docs/command-lists.md: facts by name, each ``{"value": ..}``, ``{"absent":
why}`` or ``{"blocked": why}``. Three kinds of sentences come out of readings: what *changed* while samples
were taken, and what *others used* of CPU and NPU, which make them unfit to judge; and which clocks are *not
fixed*, so that they may change next time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Reading = Mapping[str, Any]

CLOCK = "clock "
DISTURBED_BY, UNDISTURBED = "disturbed by", "nothing"
"""How a result's measurements call a clock, and what disturbed it: comparisons of runs look for them."""

FIXED_GOVERNORS = frozenset({"userspace", "performance", "powersave"})
"""Governors of devfreq and cpufreq under which a clock stays where it is (thermal limits apart)."""

BUSY_CPUS = 0.3
"""CPUs that others may keep busy, on average: a board at rest uses a tenth of one, and there is a core for
the runtime, for the agent, and for the NPU's interrupts."""
_SHORTEST_S = 1.0  # the kernel counts in hundredths of a second


def clocks(reading: Reading) -> dict[str, Mapping[str, Any]]:
    """Name -> state of every clock that could be read: ``npu``, ``ddr`` and ``cpu policy0``, ..."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in ("npu", "ddr"):
        state = _value(reading, f"{name}_clock")
        if state is not None:
            found[name] = state
    policies = _value(reading, "cpu_clocks") or {}
    return {**found, **{f"cpu {policy}": state for policy, state in sorted(policies.items())}}


def without_node(reading: Reading, immovable: frozenset[str]) -> dict[str, str]:
    """Those of the ``immovable`` clocks ("npu", "ddr") that the board has no node for, with the reason."""
    facts = {name: reading.get(f"{name}_clock", {}) for name in sorted(immovable)}
    return {name: str(fact["absent"]) for name, fact in facts.items() if "absent" in fact}


def not_fixed(reading: Reading, immovable: frozenset[str] = frozenset()) -> list[str]:
    """Clocks that may move, or of which nothing is known, each with the reason.

    A SoC's ``immovable`` clocks are fixed where the board has no node for them.
    """
    fixed = without_node(reading, immovable)
    reasons = [
        f"{name}: governor {state.get('governor') or 'unknown'}"
        for name, state in clocks(reading).items()
        if state.get("governor") not in FIXED_GOVERNORS
    ]
    for name in ("npu_clock", "ddr_clock", "cpu_clocks"):
        fact = reading.get(name, {})
        if "value" not in fact and name.partition("_")[0] not in fixed:
            why = fact.get("absent") or fact.get("blocked") or "nobody looked"
            reasons.append(f"{name.partition('_')[0]}: {why}")
    return reasons


def changes(readings: Sequence[Reading]) -> list[str]:
    """What disturbed the time between the first and the last reading; each sentence once."""
    sentences: dict[str, None] = {}
    for before, after in pairwise(readings):
        for sentence in (*_clock_changes(before, after), *_cooling(before, after), *_too_hot(after)):
            sentences.setdefault(sentence)
    return list(sentences)


def used_by_others(readings: Sequence[Reading]) -> list[str]:
    """Who else used CPUs between the readings, and the NPU when this session did not; each sentence once.

    The first and the last reading are of an NPU at rest, as far as this session is concerned.
    """
    sentences: dict[str, None] = {}
    busy = cpus_of_others(readings)
    if busy is not None and busy > BUSY_CPUS:
        sentences[f"other programs kept {busy:.1f} CPUs busy meanwhile, at most {BUSY_CPUS:g} may be"] = None
    for reading in (*readings[:1], *readings[-1:]):
        if npu_load(reading) > 0:
            loads = ", ".join(f"{load} %" for load in _value(reading, "npu_load"))
            words = f"another program uses the NPU: its load is {loads} with nothing of ours on it"
            sentences.setdefault(words)
    return list(sentences)


def npu_load(reading: Reading) -> int:
    """Percent of the busiest core; 0 where nobody could tell."""
    return max((int(load) for load in _value(reading, "npu_load") or []), default=0)


def cpus_of_others(readings: Sequence[Reading]) -> float | None:
    """How many CPUs others kept busy, on average, in the worst time between two readings; None: not known."""
    found = []
    for before, after in pairwise(readings):
        old, new = _value(before, "cpu_time"), _value(after, "cpu_time")
        if old is not None and new is not None and new["at"] - old["at"] >= _SHORTEST_S:
            others = (new["busy"] - old["busy"]) - (new["own"] - old["own"])
            found.append(max(0.0, others / (new["at"] - old["at"])))
    return max(found, default=None)


def _clock_changes(before: Reading, after: Reading) -> Iterator[str]:
    now = clocks(after)
    for name, was in clocks(before).items():
        state = now.get(name)
        if state is None:
            yield f"clock {name} could be read before, but not after"
            continue
        if was.get("governor") not in FIXED_GOVERNORS:
            continue  # it may move: `not_fixed` says so
        if was.get("hertz") != state.get("hertz"):
            yield f"clock {name} went from {_megahertz(was)} to {_megahertz(state)}"
        elif _grew(was.get("transitions"), state.get("transitions")):
            yield f"clock {name} moved {state['transitions'] - was['transitions']} times meanwhile"
        if was.get("governor") != state.get("governor"):
            yield f"clock {name}: its governor changed from {was.get('governor')} to {state.get('governor')}"


def _cooling(before: Reading, after: Reading) -> Iterator[str]:
    """A cooling device that works is what throttling is: it takes clocks away from a hot chip.

    Fans do not.
    """
    states = {device["device"]: device for device in cooling_devices(before)}
    for device in cooling_devices(after):
        was = states.get(device["device"], {})
        if device.get("state"):
            yield f"throttled: cooling device {device['type']} is at {device['state']} of {device['maximum']}"
        elif was.get("state") or _grew(was.get("transitions"), device.get("transitions")):
            yield f"throttled meanwhile: cooling device {device['type']}"


def cooling_devices(reading: Reading) -> list[Mapping[str, Any]]:
    """Those that take clocks away: not fans and the like."""
    no_clocks = ("fan", "led", "backlight")
    return [
        device
        for device in _value(reading, "cooling") or []
        if not any(word in str(device.get("type") or "").lower() for word in no_clocks)
    ]


def _too_hot(reading: Reading) -> Iterator[str]:
    for zone in _value(reading, "thermal") or []:
        limits = [trip["millidegrees"] for trip in zone.get("trips") or [] if trip["type"] == "passive"]
        if limits and (zone.get("millidegrees") or 0) >= max(limits):
            yield f"{zone.get('type') or zone['zone']} is hotter than its limit of {max(limits) / 1000:g} C"


def _grew(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before


def _megahertz(state: Mapping[str, Any]) -> str:
    hertz = state.get("hertz")
    return f"{hertz / 1e6:g} MHz" if hertz else "an unknown frequency"


def _value(reading: Reading, name: str) -> Any:
    return reading.get(name, {}).get("value")
