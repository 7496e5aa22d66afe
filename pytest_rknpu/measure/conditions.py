"""Were the conditions of a measurement what they have to be? From readings of the agent (plain data), in
words.

A reading is the ``conditions`` of docs/command-lists.md: facts by name, each ``{"value": ..}``, ``{"absent":
why}`` or ``{"blocked": why}``. Two kinds of sentences come out of readings: what *changed* while samples were
taken, which makes them unfit to judge; and which clocks are *not fixed*, so that they may change next time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Reading = Mapping[str, Any]

FIXED_GOVERNORS = frozenset({"userspace", "performance", "powersave"})
"""Governors of devfreq and cpufreq under which a clock stays where it is (thermal limits apart)."""


def clocks(reading: Reading) -> dict[str, Mapping[str, Any]]:
    """Name -> state of every clock that could be read: ``npu``, ``ddr`` and ``cpu policy0``, ..."""
    found: dict[str, Mapping[str, Any]] = {}
    for name in ("npu", "ddr"):
        state = _value(reading, f"{name}_clock")
        if state is not None:
            found[name] = state
    policies = _value(reading, "cpu_clocks") or {}
    return {**found, **{f"cpu {policy}": state for policy, state in sorted(policies.items())}}


def not_fixed(reading: Reading) -> list[str]:
    """Clocks that may move, or of which nothing is known, each with the reason."""
    reasons = [
        f"{name}: governor {state.get('governor') or 'unknown'}"
        for name, state in clocks(reading).items()
        if state.get("governor") not in FIXED_GOVERNORS
    ]
    for name in ("npu_clock", "ddr_clock", "cpu_clocks"):
        fact = reading.get(name, {})
        if "value" not in fact:
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
    states = {device["device"]: device for device in _value(before, "cooling") or []}
    for device in _value(after, "cooling") or []:
        was = states.get(device["device"], {})
        if not _throttles(device):
            continue
        if device.get("state"):
            yield f"throttled: cooling device {device['type']} is at {device['state']} of {device['maximum']}"
        elif was.get("state") or _grew(was.get("transitions"), device.get("transitions")):
            yield f"throttled meanwhile: cooling device {device['type']}"


def _throttles(device: Mapping[str, Any]) -> bool:
    return not any(word in str(device.get("type") or "").lower() for word in ("fan", "led", "backlight"))


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
