"""What readings of a board say about the time between them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pytest_rknpu.measure.conditions import (
    changes,
    clocks,
    cooling_devices,
    cpus_of_others,
    not_fixed,
    used_by_others,
    without_node,
)

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
    "npu_load": {"value": [0, 0, 0]},
    "cpu_time": {"value": {"busy": 1000.0, "own": 10.0, "at": 50.0}},
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


def test_a_clock_that_the_soc_cannot_move_is_fixed_only_where_there_is_no_node() -> None:
    immovable = frozenset({"npu", "ddr"})
    absent = changed("ddr_clock", to={"absent": "there is no dmc"})
    assert not_fixed(absent, immovable) == []
    assert without_node(absent, immovable) == {"ddr": "there is no dmc"}
    assert not_fixed(absent, frozenset({"npu"})) == ["ddr: there is no dmc"]
    assert not_fixed(changed("ddr_clock", to={"blocked": "run as root"}), immovable) == ["ddr: run as root"]
    loose = changed("npu_clock", "value", "governor", to="rknpu_ondemand")
    assert not_fixed(loose, immovable) == ["npu: governor rknpu_ondemand"]


def test_one_reading_says_nothing_of_changes() -> None:
    assert changes([FIXED]) == []
    assert changes([]) == []


def later(busy: float, own: float, at: float) -> dict[str, Any]:
    return changed("cpu_time", "value", to={"busy": 1000.0 + busy, "own": 10.0 + own, "at": 50.0 + at})


@pytest.mark.parametrize(
    ("readings", "busy"),
    [
        ([FIXED, later(8.0, 7.5, 10.0)], 0.05),  # ours: runs, and the load of LAT-07
        ([FIXED, later(8.0, 1.0, 10.0)], 0.7),
        ([FIXED, later(7.0, 0.0, 10.0), later(8.0, 0.0, 110.0)], 0.7),  # the worst time counts
        ([FIXED, later(0.5, 0.0, 0.2)], None),  # too short for the kernel's clock
        ([FIXED, later(5.0, 6.0, 10.0)], 0.0),
        ([FIXED, changed("cpu_time", to={"absent": "no /proc"})], None),
        ([FIXED], None),
    ],
)
def test_cpus_that_others_keep_busy(readings: list[dict[str, Any]], busy: float | None) -> None:
    found = cpus_of_others(readings)
    assert found is None if busy is None else found == pytest.approx(busy)
    words = ["other programs kept 0.7 CPUs busy meanwhile, at most 0.3 may be"]
    assert used_by_others(readings) == (words if busy == 0.7 else [])


def test_another_user_of_the_npu_is_seen_where_ours_is_at_rest() -> None:
    used = changed("npu_load", "value", to=[0, 12, 0])
    words = "another program uses the NPU: its load is 0 %, 12 %, 0 % with nothing of ours on it"
    assert used_by_others([used, FIXED]) == used_by_others([FIXED, used]) == [words]
    assert used_by_others([FIXED, used, FIXED]) == []  # right after a process of ours
    assert used_by_others([changed("npu_load", to={"blocked": "run as root"})]) == []


def test_fans_take_no_clock_away() -> None:
    assert [device["type"] for device in cooling_devices(FIXED)] == ["devfreq-npu"]
    assert cooling_devices({}) == []
