"""How long a test is expected to take."""

from __future__ import annotations

import pytest

from pytest_rknpu.farm.durations import Measured, expected_from, without_board
from pytest_rknpu.farm.schedule import board_in

EARLIER = [
    Measured("t.py::test_a[x-1]", "x", 4.0),
    Measured("t.py::test_a[y-1]", "y", 6.0),
    Measured("t.py::test_a[x-2]", "x", 9.0),
    Measured("t.py::test_b", None, 1.0),
    Measured("t.py::test_c[xx]", "xx", 2.0),
]


@pytest.mark.parametrize(
    ("nodeid", "seconds"),
    [
        ("t.py::test_a[x-1]", 4.0),  # the test itself
        ("t.py::test_a[z-1]", 5.0),  # the same on other boards
        ("t.py::test_a[z-3]", 4.0),  # neither: the median of all
        ("t.py::test_b", 1.0),
        ("t.py::test_new", 4.0),
        ("t.py::test_c[z]", 2.0),
    ],
)
def test_the_nearest_that_was_measured_counts(nodeid: str, seconds: float) -> None:
    assert expected_from(EARLIER, lambda name: board_in(name, ["x", "y", "z"]))(nodeid) == seconds


def test_without_any_all_tests_are_alike() -> None:
    expected = expected_from([], lambda _: None)
    assert expected("a") == expected("b") > 0


def test_a_node_id_without_its_board() -> None:
    assert without_board("t.py::test[rk3588-64-[x]]", "rk3588") == "t.py::test[-64-[x]]"
    assert without_board("t.py::test[64]", "rk3588") == "t.py::test[64]"
    assert without_board("t.py::test", "rk3588") == "t.py::test"
