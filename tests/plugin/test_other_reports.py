"""pytest-html and allure-pytest: the same properties and attachments, read from what they wrote."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from lxml import html as lxml_html
from plugin.project import Project
from plugin.schemas import properties_of

pytest.importorskip("pytest_html", reason="pip install pytest-html")
pytest.importorskip("allure_pytest", reason="pip install allure-pytest")

TESTS = r"""
@pytest.mark.requirement("SYNC-01")
def test_passes(npu):
    pass

@pytest.mark.requirement("SYNC-02", "SYNC-05")
def test_fails(npu):
    npu.session.log = "I RKNN: submit <again>\n"
    raise ConformanceFailure("line 7 is <stale>\nexpected 00 01 02\nactual   00 ff 02")

@pytest.mark.requirement("MEM-01")
def test_waives(npu):
    raise Waived("known since 2.5.0")

def test_unclear(npu):
    raise Inconclusive("3 of 300")

@pytest.mark.xfail(reason="an excuse")
def test_xfails(npu):
    assert False

def test_of_others():
    pass
"""
OUTCOMES = {
    "passes": "pass",
    "fails": "fail",
    "waives": "waived",
    "unclear": "inconclusive",
    "xfails": "fail",
}
DUMP = "0000  expected  00 01 02\n      actual    00 ff 02\n                   ^^"


def name_of(nodeid: str) -> str:
    """``fails`` of ``test_it.py::test_fails[alpha]``."""
    return nodeid.partition("::test_")[2].partition("[")[0]


def html_rows(path: Path) -> dict[str, dict[str, Any]]:
    """What pytest-html's page has of each test: cells by column, and the rest as its script gets it."""
    page = lxml_html.parse(str(path))
    data = json.loads(page.xpath("//*[@id='data-container']/@data-jsonblob")[0])
    rows = {}
    for nodeid, (test,) in data["tests"].items():
        cells = [lxml_html.fromstring(cell) for cell in test["resultsTableRow"]]
        texts = {cell.get("class").removeprefix("col-"): cell.text_content() for cell in cells}
        rows[name_of(nodeid)] = {**test, "cells": texts}
    return rows


@pytest.mark.parametrize("workers", [0, 2])
def test_html(project: Project, workers: int) -> None:
    project.tests(TESTS)
    run = project.run("--board", "alpha", "--html", "page/page.html", "--rknpu-seed", "5", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    page = project.pytester.path / "page/page.html"
    titles = lxml_html.parse(str(page)).xpath("//template//th | //th")
    assert {"Outcome", "Board", "Evidence", "Requirement"} <= {each.text_content() for each in titles}
    rows = html_rows(page)
    for name, outcome in OUTCOMES.items():
        cells = rows[name]["cells"]
        assert (cells["outcome"], cells["board"], cells["evidence"]) == (outcome, "alpha", "emulator"), name
    assert rows["fails"]["cells"]["requirement"] == "SYNC-02, SYNC-05"
    assert rows["of_others"]["cells"]["board"] == ""
    assert rows["of_others"]["extras"] == []
    table = lxml_html.fromstring(rows["fails"]["extras"][0]["content"])
    told = {row[0].text_content(): row[1].text_content() for row in table.iter("tr")}
    assert (told["soc"], told["requirement"]) == ("rk3588", "SYNC-02, SYNC-05")
    assert "runtime emulated 2.3.2" in told["versions"]
    assert "--rknpu-seed 5" in told["again"]
    attached = {extra["name"]: extra["content"] for extra in rows["fails"]["extras"][1:]}
    assert DUMP in (page.parent / attached["differing bytes"]).read_text()
    assert (page.parent / attached["runtime log"]).read_text() == "I RKNN: submit <again>\n"
    assert "differing bytes" in rows["fails"]["cells"]["links"]
    assert len(rows["passes"]["extras"]) == 1


def test_one_html_file_for_all(project: Project) -> None:
    project.tests(TESTS)
    project.run("--board", "alpha", "--html", "page.html", "--self-contained-html")
    row = html_rows(project.pytester.path / "page.html")["fails"]
    assert any(extra["name"] == "differing bytes" for extra in row["extras"])


def allure_results(folder: Path) -> dict[str, dict[str, Any]]:
    """What allure-pytest wrote of each test, attachments read in."""
    found = {}
    for path in folder.glob("*-result.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        result["attached"] = {
            each["name"]: (folder / each["source"]).read_text() for each in result.get("attachments", [])
        }
        found[result["name"].removeprefix("test_").partition("[")[0]] = result
    return found


def values(result: dict[str, Any], kind: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in result[kind]:
        found.setdefault(each["name"], []).append(each["value"])
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_allure(project: Project, workers: int) -> None:
    project.tests(TESTS)
    run = project.run("--board", "alpha", "--alluredir", "allure", "--rknpu-seed", "5", workers=workers)
    assert run.ret == pytest.ExitCode.TESTS_FAILED
    results = allure_results(project.pytester.path / "allure")
    assert {name: result["status"] for name, result in results.items()} == {
        "passes": "passed",
        "fails": "failed",
        "waives": "skipped",
        "unclear": "broken",
        "xfails": "failed",
        "of_others": "passed",
    }
    labels, parameters = values(results["fails"], "labels"), values(results["fails"], "parameters")
    assert labels["requirement"] == ["SYNC-02", "SYNC-05"]
    assert [labels[name] for name in ("board", "soc", "evidence")] == [["alpha"], ["rk3588"], ["emulator"]]
    assert labels["outcome"] == ["fail"]
    assert "runtime emulated 2.3.2" in parameters["versions"][0]
    assert "--rknpu-seed 5" in parameters["again"][0]
    assert results["fails"]["statusDetails"]["message"].startswith("line 7 is <stale>")
    assert "test_it.py" in results["fails"]["statusDetails"]["trace"]
    assert results["waives"]["statusDetails"]["message"] == "known since 2.5.0"
    assert DUMP in results["fails"]["attached"]["differing bytes"]
    assert results["fails"]["attached"]["runtime log"] == "I RKNN: submit <again>\n"
    assert results["passes"]["attached"] == {}
    assert "board" not in values(results["of_others"], "labels")


def test_another_seed_is_the_same_test_in_allures_history(project: Project) -> None:
    project.tests(TESTS)
    histories = []
    for seed in ("5", "6"):
        project.run("--board", "alpha", "--alluredir", seed, "--rknpu-seed", seed)
        results = allure_results(project.pytester.path / seed)
        histories.append({name: result["historyId"] for name, result in results.items()})
        excluded = {each["name"] for each in results["fails"]["parameters"] if each.get("excluded")}
        assert {"seed", "versions", "again"} <= excluded
    assert histories[0] == histories[1]


def test_another_attempt_has_its_labels_once(project: Project) -> None:
    pytest.importorskip("pytest_rerunfailures", reason="pip install pytest-rerunfailures")
    project.tests("@pytest.mark.requirement('SYNC-01')\ndef test_it(npu):\n    assert False, 'each time'\n")
    project.run("--board", "alpha", "--alluredir", "allure", "--reruns", "1")
    (result,) = allure_results(project.pytester.path / "allure").values()
    labels = values(result, "labels")
    assert (labels["requirement"], labels["board"]) == (["SYNC-01"], ["alpha"])
    assert result["status"] == "failed"


def test_junit_files_have_the_command_that_runs_a_test_again(project: Project) -> None:
    project.tests(TESTS)
    project.run("--board", "alpha", "--rknpu-report", "out", "--junitxml", "own.xml", "--rknpu-seed", "5")
    for path in ("out/junit/alpha.xml", "own.xml"):
        cases = etree.parse(str(project.pytester.path / path)).iter("testcase")
        case = next(case for case in cases if case.get("name") == "test_fails[alpha]")
        words = shlex.split(properties_of(case)["again"])
        assert words == ["pytest", "test_it.py::test_fails[alpha]", *_OPTIONS]


_OPTIONS = ["--boards", "boards.toml", "--rknpu-seed", "5", "--board", "alpha"]


@pytest.mark.parametrize("arguments", [(), ("-p", "no:html", "-p", "no:allure_pytest")])
def test_neither_is_imported_where_it_is_not_asked_for(project: Project, arguments: tuple[str, ...]) -> None:
    project.tests(
        """
import sys
def test_it(npu):
    assert not {"pytest_rknpu.report.html_report", "pytest_rknpu.report.allure_report"} & set(sys.modules)
"""
    )
    command = [sys.executable, "-m", "pytest", "--boards", "boards.toml", "--board", "alpha", *arguments]
    done = subprocess.run(command, cwd=project.pytester.path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_a_page_cannot_be_written_to_by_a_board(project: Project) -> None:
    project.tests("def test_it(npu):\n    pytest.fail('<script>alert(1)</script>')\n")
    project.run("--board", "alpha", "--html", "page.html")
    page = html.unescape((project.pytester.path / "page.html").read_text())
    assert not re.search(r"<(td|tr|th)[^>]*><script>alert", page)
