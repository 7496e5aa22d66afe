"""What readings of a board say about the time between them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_rknpu.measure.conditions import changes, clocks, not_fixed

FIXED: dict[str, Any] = {
    "npu_clock": {"value": {"node": "a.npu", "governor": "userspace", "hertz": 10**9, "transitions": 12}},
    "ddr_clock": {
        "value": {"node": "dmc", "governor": "performance", "hertz": 2 * 10**9, "transitions": None}
    },
    "cpu_clocks": {"value": {"policy0": {"governor": "userspace", "hertz": 1_800_000_000, "transitions": 3}}},
    "thermal": {
        "value": [
            {
                "zone": "thermal_zone0",
                "type": "soc-thermal",
                "millidegrees": 60_000,
                "trips": [
                    {"type": "passive", "millidegrees": 75_000},
                    {"type": "passive", "millidegrees": 85_000},
                    {"type": "critical", "millidegrees": 115_000},
                ],
            }
        ]
    },
    "cooling": {
        "value": [
            {"device": "cooling_device0", "type": "devfreq-npu", "state": 0, "maximum": 5, "transitions": 1},
            {"device": "cooling_device1", "type": "pwm-fan", "state": 1, "maximum": 3, "transitions": 7},
        ]
    },
    "load": {"value": {"minutes_1": 0.1, "minutes_5": 0.1, "minutes_15": 0.1}},
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """The reading with one value changed."""
    reading = copy.deepcopy(FIXED)
    place: Any = reading
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return reading


def test_nothing_happened() -> None:
    assert changes([FIXED, FIXED, FIXED]) == []
    assert not_fixed(FIXED) == []
    assert list(clocks(FIXED)) == ["npu", "ddr", "cpu policy0"]


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (changed("npu_clock", "value", "hertz", to=6 * 10**8), "clock npu went from 1000 MHz to 600 MHz"),
        (
            changed("npu_clock", "value", "hertz", to=None),
            "clock npu went from 1000 MHz to an unknown frequency",
        ),
        (changed("npu_clock", "value", "transitions", to=14), "clock npu moved 2 times meanwhile"),
        (
            changed("cpu_clocks", "value", "policy0", "governor", to="schedutil"),
            "clock cpu policy0: its governor changed from userspace to schedutil",
        ),
        (changed("cpu_clocks", to={"absent": "x"}), "clock cpu policy0 could be read before, but not after"),
        (
            changed("cooling", "value", 0, "state", to=2),
            "throttled: cooling device devfreq-npu is at 2 of 5",
        ),
        (
            changed("cooling", "value", 0, "transitions", to=3),
            "throttled meanwhile: cooling device devfreq-npu",
        ),
        (
            changed("thermal", "value", 0, "millidegrees", to=86_000),
            "soc-thermal is hotter than its limit of 85 C",
        ),
    ],
)
def test_what_happened_is_told_once(after: dict[str, Any], sentence: str) -> None:
    found = changes([FIXED, after, after])
    assert found == [sentence]


@pytest.mark.parametrize(
    "after",
    [
        changed("cooling", "value", 1, "state", to=3),  # a fan takes no clock away
        changed("thermal", "value", 0, "millidegrees", to=80_000),  # warm, below what it may reach
        changed("load", "value", "minutes_1", to=8.0),  # measuring is a load
        changed("ddr_clock", "value", "transitions", to=5),  # was not counted before
    ],
)
def test_what_is_no_disturbance(after: dict[str, Any]) -> None:
    assert changes([FIXED, after]) == []


def test_a_clock_that_may_move_is_no_news_when_it_does() -> None:
    """It is not fixed: that is said of it, once, and may be allowed."""
    loose = changed("cpu_clocks", "value", "policy0", "governor", to="schedutil")
    moved = copy.deepcopy(loose)
    moved["cpu_clocks"]["value"]["policy0"].update(hertz=408_000_000, transitions=99)
    assert changes([loose, moved]) == []
    assert not_fixed(loose) == ["cpu policy0: governor schedutil"]


def test_clocks_that_may_move_are_named() -> None:
    assert not_fixed(changed("npu_clock", "value", "governor", to="rknpu_ondemand")) == [
        "npu: governor rknpu_ondemand"
    ]
    assert not_fixed(changed("ddr_clock", to={"absent": "there is no dmc"})) == ["ddr: there is no dmc"]
    assert not_fixed(changed("ddr_clock", to={"blocked": "run as root"})) == ["ddr: run as root"]
    assert not_fixed({}) == ["npu: nobody looked", "ddr: nobody looked", "cpu: nobody looked"]
    assert not_fixed(changed("npu_clock", "value", "governor", to=None)) == ["npu: governor unknown"]


def test_one_reading_says_nothing_of_changes() -> None:
    assert changes([FIXED]) == []
    assert changes([]) == []
