"""Parts of the page that have rules of their own: marked bytes, latency with bounds, pruned models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html
from page.pages import result, run_record, small

from pytest_rknpu.report.page import page_text
from pytest_rknpu.report.page.bytes_shown import marked
from pytest_rknpu.report.page.content import pruned_table, stale_table
from pytest_rknpu.report.page.figures import latency_figures
from pytest_rknpu.report.results import Result, Results
from pytest_rknpu.session.differences import describe_difference
from pytest_rknpu.verdict import Measurement, Outcome, Samples


def marks(message: str) -> list[str]:
    return [bit.text for bit in marked(message) if bit.differs]


def test_bytes_that_differ_are_marked_in_both_dumps() -> None:
    expected, actual = bytes(range(16)), bytes(range(5)) + b"\xff\xfe" + bytes(range(7, 16))
    message = describe_difference(expected, actual)
    assert marks(message) == ["0506", "fffe"]
    assert "".join(bit.text for bit in marked(message)) == message


def test_a_byte_is_marked_whole() -> None:
    assert marks("expected 0a0b\nactual   0c0b") == ["0a", "0c"]


@given(st.binary(min_size=1, max_size=80), st.binary(min_size=1, max_size=80), st.text(max_size=20))
def test_marks_lose_nothing(expected: bytes, actual: bytes, more: str) -> None:
    for other in (actual, expected[:-1] + bytes([expected[-1] ^ 1])):
        message = f"{more}\n{describe_difference(expected, other)}\n{more}"
        assert "".join(bit.text for bit in marked(message)) == message
    differing = marks(describe_difference(expected, expected[:-1] + bytes([expected[-1] ^ 1])))
    assert len(differing) == 2


@pytest.mark.parametrize(
    "message",
    [
        "",
        "expected 00",
        "expected 00\nactual   0011",
        "expected 0011 22\nactual   00 1122",
        "expected a list\nactual   a word",
        "actual   00\nexpected 11",
    ],
)
def test_other_messages_have_no_marks(message: str) -> None:
    assert marks(message) == []
    assert "".join(bit.text for bit in marked(message)) == message


def test_the_page_marks_them() -> None:
    document = html.fromstring(page_text(small()))
    assert [mark.text for mark in document.xpath("//pre/mark")] == ["11", "ff"]
    (pre,) = document.xpath("//pre[mark]")
    assert pre.text_content() == next(t.message for t in small().tests if "cache line 1" in t.message)


def timed(*budgets: Measurement) -> Result:
    """1,000 runs of 2.000 to 2.999 ms."""
    measured = (Measurement("model", "m", ""), Measurement("core mask", "none", ""), *budgets)
    whole = tuple(range(2_000_000, 3_000_000, 1000))
    return result(
        "LAT-01", "alpha", Outcome.PASS, measurements=measured, samples=(Samples("run", "ns", (whole,)),)
    )


def test_latency_has_bounds_and_budgets() -> None:
    (figure,) = latency_figures([timed(Measurement("budget p50", 2.75, "ms"))])
    # 1,000 runs: the median lies between the 474th and the 527th with 95 % on each side.
    assert "p50 2.499 ms (at least 2.473, at most 2.526, budget 2.75)" in figure.words
    assert "p99 2.989 ms (at least 2.984, at most 2.995)" in figure.words
    assert "budget p50" in figure.svg
    (plain,) = latency_figures([timed()])
    assert "budget" not in plain.svg


def test_too_few_runs_have_no_bounds() -> None:
    one = timed()
    few = Samples("run", "ns", ((2_000_000, 2_100_000),))
    (figure,) = latency_figures([Result(**{**vars(one), "samples": (few,)})])
    assert "p50 2.000 ms (no lower bound, no upper bound)" in figure.words
    assert "p99 2.100 ms (at least 2.100, no upper bound)" in figure.words


def test_pruned_models_stand_against_dense_ones() -> None:
    measured = (
        Measurement("top-1 dense", 0.98, ""),
        Measurement("top-1 pruned", 0.97, ""),
        Measurement("top-1 flips", 12, "samples"),
        Measurement("McNemar p", 0.25, ""),
    )
    table = pruned_table(
        [
            result("SPARSE-05", "alpha", Outcome.PASS, measurements=measured),
            result("ACC-01", "alpha", Outcome.PASS, measurements=(Measurement("top-1", 0.98, ""),)),
        ]
    )
    (row,) = table.rows
    assert dict(zip(table.columns, row[2:], strict=True)) == {
        "top-1, dense": "0.98",
        "top-1, pruned": "0.97",
        "flips": "12",
        "lost": "",
        "gained": "",
        "McNemar p": "0.25",
        "loss at most (95 %)": "",
        "declared margin": "",
    }


def test_stale_lines_of_every_chapter() -> None:
    measured = (Measurement("wrong lines with unsynced weights", 7, "lines"),)
    assert stale_table([result("MEM-14", "alpha", Outcome.PASS, measurements=measured)]).rows[0][2:4] == (
        "wrong lines with unsynced weights",
        "7",
    )


def test_what_the_runtime_logged_keeps_its_lines() -> None:
    note = "the runtime's log ends with:\nI RKNN: one\nE RKNN: two"
    failed = result("SYNC-01", "alpha", Outcome.FAIL, notes=(note,))
    run = run_record(small().run.boards)
    document = html.fromstring(page_text(Results(run, (failed,), torn=False)))
    (shown,) = document.xpath("//section[@id='failures']//p[@class='note']")
    assert shown.text == note
