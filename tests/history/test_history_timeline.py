"""Since when what fails, as the pure part decides it."""

from __future__ import annotations

from itertools import permutations

import pytest

from pytest_rknpu.history.timeline import Seen, breaks, spans, turned
from pytest_rknpu.history.versions import differences, order_of, version_set
from pytest_rknpu.verdict import Outcome

LETTERS = {
    "p": Outcome.PASS,
    "F": Outcome.FAIL,
    "w": Outcome.WAIVED,
    "s": Outcome.SKIP,
    "?": Outcome.INCONCLUSIVE,
    "i": Outcome.INFRA,
}


def seen(letters: str, versions: str = "") -> list[Seen]:
    """A result per letter (a blank: that run had no such test); ``versions``: the runtime of each run."""
    judged = [letter in "pFw" for letter in letters]
    return [
        Seen(run, LETTERS[letter], {"runtime": versions[run] if versions else "1"}, sum(judged[: run + 1]))
        for run, letter in enumerate(letters)
        if letter != " "
    ]


def places(letters: str) -> list[tuple[int | None, int, int, int | None]]:
    return [
        (
            one.last_pass.run if one.last_pass else None,
            one.first_failure.run,
            one.failures,
            one.passes_again.run if one.passes_again else None,
        )
        for one in spans(seen(letters))
    ]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("pppp", []),
        ("ppFF", [(1, 2, 2, None)]),
        ("pFFp", [(0, 1, 2, 3)]),
        ("FFp", [(None, 0, 2, 2)]),
        ("FF", [(None, 0, 2, None)]),
        ("pFpF", [(0, 1, 1, 2), (2, 3, 1, None)]),
        ("ps?iFs?ip", [(0, 4, 1, 8)]),  # what shows nothing neither ends nor begins anything
        ("p  F  F", [(0, 3, 2, None)]),  # nor does a run without the test
        ("pwwp", [(0, 1, 2, 3)]),  # a waiver accepts a failure; it is one all the same
        ("s?i", []),
    ],
)
def test_spans(letters: str, expected: list[tuple[int | None, int, int, int | None]]) -> None:
    assert places(letters) == expected


def test_the_order_of_results_does_not_matter() -> None:
    expected = list(spans(seen("pFFpF")))
    for shuffled in permutations(seen("pFFpF")):
        assert list(spans(shuffled)) == expected


def test_a_second_attempt_in_the_same_run_does_not_make_a_failure_good() -> None:
    both = [*seen("p"), Seen(1, Outcome.PASS, {}), Seen(1, Outcome.FAIL, {}), Seen(1, Outcome.PASS, {})]
    (found,) = spans(both)
    assert found.first_failure.run == 1
    assert found.passes_again is None


def test_a_break_names_what_changed_since_the_last_pass() -> None:
    tests = {"a": (["SYNC-01"], seen("ppFFp", "AABBC")), "b": (["SYNC-01"], seen("ppFFp", "AABBC"))}
    (found,) = breaks(tests)
    assert found.tests == ("a", "b")
    assert found.differs == {"runtime": ("A", "B")}
    assert found.span.passes_again is not None
    assert found.span.passes_again.versions == {"runtime": "C"}
    assert not found.open


def test_a_subset_that_passes_says_nothing_of_the_test_that_fails() -> None:
    """Run 2 had only test b: SYNC-01 does not pass again by that."""
    tests = {"a": (["SYNC-01"], seen("pF F")), "b": (["SYNC-01"], seen("pppp"))}
    (found,) = breaks(tests)
    assert found.tests == ("a",)
    assert found.open


def test_a_test_of_two_requirements_breaks_both() -> None:
    found = breaks({"a": (["SYNC-01", "VER-05"], seen("pF"))})
    assert [one.requirement for one in found] == ["SYNC-01", "VER-05"]


@pytest.mark.parametrize(
    ("letters", "turn"),
    [
        ("pF", "began to fail"),
        ("ppsF", "began to fail"),
        ("wF", "began to fail"),  # the waiver has run out
        ("p?", "no longer shown"),
        ("pi", "no longer shown"),
        ("ps?", "no longer shown"),
        ("FF", None),
        ("pw", None),
        ("F?", None),
        ("?i", None),
        ("F", None),
        ("pFp", None),
    ],
)
def test_the_newest_run_against_the_one_before(letters: str, turn: str | None) -> None:
    found = turned("a", ["SYNC-01"], seen(letters), newest=len(letters) - 1)
    assert (found.turn if found else None) == turn


def test_an_old_regression_is_not_one_of_the_newest_run() -> None:
    assert turned("a", ["SYNC-01"], seen("pF "), newest=2) is None


def test_versions_that_count() -> None:
    from report.samples import RUN

    said = {
        "runtime": "2.3.2",
        "clocks": "npu 1000 MHz",
        "npu_clock": "1000 MHz",
        "lite": "absent (looked in /a)",
        "toolkit": "probe blocked (no time)",
    }
    found = version_set(said, RUN)
    assert found == {
        "runtime": "2.3.2",
        "lite": "absent",
        "toolkit": "probe blocked",
        "pytest-rknpu": "0.1.0",
    }


def test_differences_name_the_main_versions_first() -> None:
    before = {"device_tree": "a", "driver": "1", "runtime": "1"}
    after = {"device_tree": "b", "driver": "2", "toolkit": "2"}
    assert list(differences(before, after)) == ["driver", "runtime", "toolkit", "device_tree"]
    assert differences(before, after)["runtime"] == ("1", "not recorded")


def test_versions_are_sorted_as_people_count() -> None:
    runtimes = ["2.10.0", "2.9.1", "2.3.2", "2.3.0b", "", "next"]
    ordered = sorted(({"runtime": one} for one in runtimes), key=order_of)
    assert [one["runtime"] for one in ordered] == ["", "next", "2.3.0b", "2.3.2", "2.9.1", "2.10.0"]
