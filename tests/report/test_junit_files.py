"""JUnit per board: Jenkins' shape, our properties, any text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin.schemas import properties_of, validate_junit
from report.samples import RUN, result

from pytest_rknpu.report.junit import junit_text, legal, write_junit
from pytest_rknpu.verdict import Measurement, Outcome


def test_one_file_per_board_and_one_for_the_rest(tmp_path: Path) -> None:
    results = [
        result(),
        result(board="rk-two", soc="rk3576"),
        result(),
        result(board=None, soc=None, evidence=None, versions={}),
    ]
    written = write_junit(tmp_path / "junit", RUN, results)
    assert [path.name for path in written] == ["rk-one.xml", "rk-two.xml", "_no-board.xml"]
    counts = [validate_junit(path.read_text()).find("testsuite").get("tests") for path in written]
    assert counts == ["2", "1", "1"]


def test_the_suite_says_what_the_verdict_holds_for() -> None:
    versions = {
        "kernel": "6.1",
        "driver": "0.9.8",
        "runtime": "2.3.2",
        "bsp": "Debian 12",
        "lite": "absent (no)",
    }
    root = validate_junit(junit_text("rk-one", RUN, [result(versions={}), result(versions=versions)]))
    suite = root.find("testsuite")
    properties = properties_of(suite)
    assert properties["board"] == suite.get("name") == "rk-one"
    assert (properties["SoC"], properties["evidence"]) == ("rk3588", "hardware")
    assert (properties["BSP"], properties["kernel"], properties["driver"]) == ("Debian 12", "6.1", "0.9.8")
    assert properties["runtime"] == "2.3.2"
    assert {properties[name] for name in ("toolkit", "model compiler", "clocks")} == {"not recorded"}
    assert properties["lite"] == "absent (no)"
    assert (suite.get("hostname"), suite.get("timestamp")) == ("lab", "2026-01-01T00:00:00+00:00")


@pytest.mark.parametrize(
    ("outcome", "element", "kind"),
    [
        (Outcome.PASS, None, None),
        (Outcome.FAIL, "failure", "fail"),
        (Outcome.SKIP, "skipped", "skipped"),
        (Outcome.WAIVED, "skipped", "skipped"),
        (Outcome.INCONCLUSIVE, "error", "inconclusive"),
        (Outcome.INFRA, "error", "infra"),
        (Outcome.HARNESS, "error", "harness"),
    ],
)
def test_each_outcome(outcome: Outcome, element: str | None, kind: str | None) -> None:
    root = validate_junit(junit_text("rk-one", RUN, [result(outcome=outcome)]))
    case = root.find(".//testcase")
    found = [(each.tag, each.get("type")) for each in case if each.tag in ("failure", "error", "skipped")]
    assert found == ([(element, kind)] if element else [])
    assert properties_of(case)["outcome"] == outcome
    counts = {name: root.find("testsuite").get(name) for name in ("failures", "errors", "skipped")}
    name = {"failure": "failures", "error": "errors"}.get(element or "", element)
    assert counts == {each: str(int(each == name)) for each in counts}


def test_figures_and_remarks_are_in_the_output() -> None:
    each = result(
        measurements=(Measurement("stale", 3, "lines"), Measurement("sqnr", "inf", "dB")), notes=("a",)
    )
    case = validate_junit(junit_text("rk-one", RUN, [each])).find(".//testcase")
    assert case.find("system-out").text == "stale: 3 lines\nsqnr: inf dB\na"


@pytest.mark.parametrize(
    ("nodeid", "class_name", "name"),
    [
        ("suites/sync/test_a.py::test_x[b-64]", "suites.sync.test_a", "test_x[b-64]"),
        ("test_a.py::TestC::test_x[b-a::c]", "test_a.TestC", "test_x[b-a::c]"),
        ("test_a.py::test_x", "test_a", "test_x"),
    ],
)
def test_names(nodeid: str, class_name: str, name: str) -> None:
    case = validate_junit(junit_text("b", RUN, [result(nodeid=nodeid)])).find(".//testcase")
    assert (case.get("classname"), case.get("name")) == (class_name, name)


@pytest.mark.parametrize("duration_s", [0.0, 1e-7, 0.0005, 1.2345678, 123456.789])
def test_times_are_plain_decimals(duration_s: float) -> None:
    root = validate_junit(junit_text("b", RUN, [result(duration_s=duration_s)] * 3))
    assert float(root.find(".//testcase").get("time")) == pytest.approx(duration_s, abs=0.0005)
    assert float(root.find("testsuite").get("time")) == pytest.approx(3 * duration_s, abs=0.0005)


@given(st.text(min_size=1, max_size=40))
def test_any_text_makes_a_document(text: str) -> None:
    each = result(
        outcome=Outcome.FAIL,
        message=text,
        nodeid=f"t.py::test_x[{text}]",
        notes=(text,),
        versions={"kernel": text},
        measurements=(Measurement(text, text, text),),
    )
    case = validate_junit(junit_text("b", RUN, [each])).find(".//testcase")
    assert case.find("failure") is not None


def test_what_xml_cannot_hold_is_visible() -> None:
    assert legal("a\x1b[31m\x00\ud800\ufffe\tü\n") == "a#x1B[31m#x00#xD800#xFFFE\tü\n"
    each = result(outcome=Outcome.FAIL, message="\x00first\nsecond")
    failure = validate_junit(junit_text("b", RUN, [each])).find(".//failure")
    assert failure.get("message") == "#x00first"
    assert failure.text == "#x00first\nsecond"
