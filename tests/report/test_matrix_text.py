"""The matrix: who decides a cell, and how it looks on terminals of any width."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.samples import result

from pytest_rknpu.report.matrix import matrix_lines, matrix_of
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import REQUIREMENTS, Outcome, worst

ORDER = ["fail", "harness", "infra", "inconclusive", "waived", "pass", "skip"]


def text(results: list[Result], width: int = 80) -> list[str]:
    """The lines without their colours."""
    return ["".join(piece.text for piece in line) for line in matrix_lines(results, width)]


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(map(Outcome, ORDER), 2)))
def test_the_weightier_outcome_decides(first: Outcome, second: Outcome) -> None:
    assert worst([second, first]) is first
    cell = matrix_of([result(outcome=second), result(outcome=first), result(outcome=second)])["SYNC-01"][
        "rk-one"
    ]
    assert (cell.outcome, cell.deciding, cell.tests) == (first, 1, 3)


def test_a_pass_is_green_only_alone_or_with_skips() -> None:
    assert worst([Outcome.SKIP, Outcome.PASS]) is Outcome.PASS
    assert {outcome for outcome in Outcome if worst([Outcome.PASS, outcome]) is Outcome.PASS} == {
        Outcome.PASS,
        Outcome.SKIP,
    }


def test_the_table() -> None:
    results = [
        result(requirement=("MEM-01",)),
        result(requirement=("SYNC-02", "SYNC-01"), outcome=Outcome.FAIL),
        result(requirement=("SYNC-01",)),
        result(board="b2", requirement=("SYNC-01",), outcome=Outcome.SKIP),
        result(board=None, requirement=("ERR-01",)),
        result(requirement=()),
    ]
    assert text(results) == [
        "requirement  rk-one    b2",
        "SYNC-01      fail 1/2  skip",
        "SYNC-02      fail      -",
        "MEM-01       pass      -",
    ]


def test_nothing_to_show() -> None:
    assert text([]) == []
    assert text([result(board=None)]) == []
    assert text([result(requirement=())]) == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "rk3588", "orange-pi-5-plus-in-the-cellar", "x" * 64]),
            st.sampled_from(list(REQUIREMENTS)),
            st.sampled_from(Outcome),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(16, 200),
)
def test_it_fits_any_terminal_and_loses_nothing(triples: list[tuple[str, str, Outcome]], width: int) -> None:
    results = [result(board=board, requirement=(id,), outcome=outcome) for board, id, outcome in triples]
    lines = text(results, width)
    assert max(map(len, lines)) <= width
    cells = sum(len(row) for row in matrix_of(results).values())
    coloured = [piece for line in matrix_lines(results, width) for piece in line if piece.outcome]
    assert len(coloured) == cells
