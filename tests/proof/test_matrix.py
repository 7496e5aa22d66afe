"""The stored matrix is true: recomputed for each fault's own requirements, and complete."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_rknpu.verdict import REQUIREMENTS, Outcome
from tests.proof import matrix, result_faults, sparse_faults
from tests.proof.catalogue import CATALOGUE
from tests.proof.clean import LEFT_OUT, bound_of, count_alarms
from tests.proof.doctored import Trials, outcome_with
from tests.proof.document import MEASURED, PATH, caught_by, document, is_complete

# Of the clean runs that the document counts, seeds that it does not.
FIRST_SEED, RUNS = 100_000, 40


QUICK = [name for name, seeded in CATALOGUE.items() if not seeded.slow]
SLOW = [name for name, seeded in CATALOGUE.items() if seeded.slow]
full = pytest.mark.skipif(
    "RKNPU_TEST_FULL" not in os.environ, reason="minutes long: RKNPU_TEST_FULL=1 or python -m tests.proof"
)


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=full) for name in SLOW)])
def test_each_fault_is_caught_as_stored(name: str) -> None:
    """By the tests of its own requirements."""
    seeded = CATALOGUE[name]
    expected = matrix.stored().get(name, {})
    found = matrix.problems(seeded, matrix.compute(seeded, only_named=True), expected)
    assert not found, (
        f"{name}: {found}; after a change that means it: python -m tests.proof --faults '{name}'"
    )


def test_every_fault_is_in_the_matrix_and_kills_what_it_must() -> None:
    kills = matrix.stored()
    assert is_complete(kills)
    survivors = {
        name: sorted(set(seeded.requirements) - set(kills[name]))
        for name, seeded in CATALOGUE.items()
        if not set(seeded.requirements) <= set(kills[name])
    }
    assert not survivors


def test_every_requirement_that_judges_is_caught_by_a_fault() -> None:
    """On one of the layers; what measures only is listed, and judged by no fault."""
    caught = caught_by(matrix.stored())
    assert [id for id, faults in caught.items() if not faults] == list(MEASURED)


@pytest.mark.parametrize("trials", [*result_faults.SOUND, *sparse_faults.SOUND])
def test_what_is_doctored_passes_undoctored(trials: Trials) -> None:
    """A fault must not be caught by the way in which it is seeded."""
    assert {outcome_with(test, arguments) for test, arguments in trials()} == {Outcome.PASS}


def test_requirements_and_tests_of_the_matrix_exist() -> None:
    """A test that was renamed must not stay in the matrix."""
    suites = Path(__file__).parents[2] / "suites"
    text = "\n".join(path.read_text(encoding="utf-8") for path in suites.rglob("test_*.py"))
    for found in matrix.stored().values():
        assert set(found) <= set(REQUIREMENTS)
        for test in {test for tests in found.values() for test in tests}:
            assert f"def {test}(" in text


def test_the_document_is_what_the_matrix_says() -> None:
    assert PATH.read_text(encoding="utf-8") == document(
        matrix.stored(), matrix.clean_runs(), all_suites=matrix.is_full()
    )


def test_clean_runs_were_counted_without_an_alarm() -> None:
    clean = matrix.clean_runs()
    assert clean["runs"] >= 1000
    assert clean["alarms"] == 0
    assert bound_of(clean["runs"]) < 0.003


def test_clean_runs_raise_no_alarm() -> None:
    """Seeds that were not counted before."""
    passed, red = count_alarms(FIRST_SEED, RUNS)
    print(
        f"{passed} clean runs ({LEFT_OUT}): a rate of false alarms above {bound_of(passed):.2%} is excluded"
    )
    assert not red
    assert passed == RUNS


def test_a_survivor_and_an_unexpected_kill_are_told() -> None:
    seeded = next(iter(CATALOGUE.values()))
    first, *others = seeded.requirements
    kept = {id: {"test_it": "fail"} for id in others}
    assert f"survives {first}" in matrix.problems(seeded, kept, {first: {"test_it": "fail"}, **kept})
    surprise = {**kept, first: {"test_other": "fail"}}
    assert matrix.problems(seeded, surprise, {first: {"test_it": "fail"}, **kept}) == [
        f"unexpected: test_other of {first} ends fail",
        f"test_it of {first} does not catch it any more",
    ]


def test_one_more_doubt_about_what_the_fault_breaks_is_no_surprise() -> None:
    """It was red on a loaded machine; a failure, and a doubt about another requirement, still are."""
    timed = CATALOGUE["rare-tail"]
    stored = {"LAT-05": {"test_warm": "inconclusive"}}
    doubt = {"LAT-05": {"test_warm": "inconclusive", "test_stable": "inconclusive"}}
    assert not matrix.problems(timed, doubt, stored)
    failure = {"LAT-05": {"test_warm": "inconclusive", "test_stable": "fail"}}
    assert matrix.problems(timed, failure, stored) == ["unexpected: test_stable of LAT-05 ends fail"]
    elsewhere = {**stored, "LAT-06": {"test_masks": "inconclusive"}}
    assert matrix.problems(timed, elsewhere, stored) == ["unexpected: test_masks of LAT-06 ends inconclusive"]
