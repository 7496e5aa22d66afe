"""Skips of one cause become one line, and none is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rknpu.report.folded_skips import Skip, fold
from pytest_rknpu.report.remedies import without_remedy

INSTALL = "RKNN-Toolkit2 is not installed; install it with: pip install 'pytest-rknpu[toolkit]'"


def lines(*skips: Skip) -> list[str]:
    return [f"[{len(places)}] {boards}: {cause}" for boards, cause, places in fold(skips)]


def test_what_differs_by_board_alone_is_one_cause() -> None:
    assert lines(
        Skip("a-1 is emulated, as rk3588 is", "a-1", "rk3588"),
        Skip("a-2 is emulated, as rk3576 is", "a-2", "rk3576"),
        Skip("a-1 is emulated, as rk3588 is", "a-1", "rk3588"),
    ) == ["[3] a-1, a-2: <board> is emulated, as <SoC> is"]


def test_what_is_alike_keeps_its_words() -> None:
    assert lines(
        Skip("rk3588 has none", "a", "rk3588"), Skip("rk3588 has none", "b", "rk3588"), Skip("alone", "", "")
    ) == ["[2] a, b: rk3588 has none", "[1] no board: alone"]


def test_a_name_within_a_word_is_no_name() -> None:
    assert lines(Skip("rk3588s and x-a", "a", "rk3588"), Skip("rk3588s and x-a", "x", "rk3588")) == [
        "[2] a, x: rk3588s and x-a"
    ]
    assert len(lines(Skip("x-a", "a", ""), Skip("x-b", "b", ""))) == 2


def test_the_board_stands_before_the_line_and_not_twice() -> None:
    assert lines(Skip("a: has no core", "a", "rk3588")) == ["[1] a: has no core"]


def test_of_many_boards_some_are_named() -> None:
    assert lines(*(Skip("no", f"b{n}", "") for n in range(4))) == ["[4] b0, b1, b2, b3: no"]
    assert lines(*(Skip("no", f"b{n}", "") for n in range(9))) == ["[9] b0, b1, b2 and 6 more: no"]


def test_waived_failures_are_one_line_for_what_is_known() -> None:
    assert lines(
        Skip("waived: layer 1 is dense. Known: the compiler does so", "a", "", "known to the suite"),
        Skip("waived: layer 2 is dense. Known: the compiler does so", "a", "", "known to the suite"),
        Skip(
            "waived: why (link), until 2030-01-01; fail as described: at 1",
            "a",
            "",
            "1: why, until 2030-01-01",
        ),
        Skip(
            "waived: why (link), until 2030-01-01; fail as described: at 2",
            "b",
            "",
            "1: why, until 2030-01-01",
        ),
        Skip("waived: no such word", "b", "", "known to the suite"),
    ) == [
        "[2] a: waived: the compiler does so",
        "[2] a, b: waived by 1: why, until 2030-01-01",
        "[1] b: waived: no such word",
    ]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (INSTALL, "RKNN-Toolkit2 is not installed"),
        (f"there is no build log: {INSTALL}", "there is no build log: RKNN-Toolkit2 is not installed"),
        (f"{INSTALL}, or give a file", "RKNN-Toolkit2 is not installed (or give a file)"),
        ("has one NPU core", "has one NPU core"),
    ],
)
def test_what_to_install_is_not_part_of_the_cause(reason: str, cause: str) -> None:
    assert without_remedy(reason) == cause


words = st.text("ab- :<>", max_size=8)
skips = st.builds(
    Skip,
    words,
    st.sampled_from(["", "a", "b", "a-b"]),
    st.sampled_from(["", "a"]),
    st.sampled_from(["", "1: x"]),
)


@given(st.lists(skips, max_size=30))
def test_each_skip_is_in_one_line(some: list[Skip]) -> None:
    places = [place for _, _, places in fold(some) for place in places]
    assert sorted(places) == list(range(len(some)))
