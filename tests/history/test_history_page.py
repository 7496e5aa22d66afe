"""The page of a history: what it holds, and how it behaves in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from history.many_runs import latency, run, shown, write_all
from lxml import html
from page.browsers import contrasts, started_browser, widths
from page.pages import NASTY

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.history import HistoryDatabase, collect, overview
from pytest_rknpu.history.finding import LeftOut
from pytest_rknpu.history.page import page_text, render, write_page
from pytest_rknpu.verdict import Outcome

P, F = Outcome.PASS, Outcome.FAIL


def filled(folder: Path) -> tuple[Any, Any]:
    """A history with everything that the page shows, and with what could hurt it."""
    runs = []
    for day, runtime in enumerate(("2.3.0", "2.3.0", "2.3.2", "2.3.2", "2.4.0", "2.4.0")):
        versions = {"runtime": runtime, "bsp": "Debian 12" if day < 3 else NASTY}
        runs.append(
            run(
                day,
                shown(F if runtime == "2.3.2" else P, versions=versions),
                shown(F if day == 5 else P, "new", versions=versions, requirement=("MEM-01",), message=NASTY),
                shown(
                    F if day % 2 else P, "soft", board="emu-one", evidence="emulator", requirement=("ERR-02",)
                ),
                latency(2.4 if runtime == "2.3.2" else 2.0, day, versions=versions),
            )
        )
    with HistoryDatabase(None) as database:
        collected = collect(database, [write_all(folder / "ci", runs)])
        return overview(database), collected


def test_the_page_holds_what_people_look_for(tmp_path: Path) -> None:
    text = page_text(*filled(tmp_path))
    document = html.fromstring(text)
    words = document.text_content()
    for expected in (
        "runtime 2.3.0 -> 2.3.2",
        "regressed",
        "does not pass in",
        "1000 samples",
    ):
        assert expected in words, expected
    assert "says nothing about silicon" in words
    assert re.search(r"p50 [12]\.\d{3} to [12]\.\d{3} ms", words)
    ids = document.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {anchor.get("href")[1:] for anchor in document.xpath("//a")} <= set(ids)
    (row,) = document.xpath("//tr[th='SYNC-01'][td[contains(., '2.3.0 -> 2.3.2')]]")
    assert "passes again" in row.text_content()
    matrix = document.xpath("//table[thead//th='set']")[0]
    cells = [cell.text for cell in matrix.xpath(".//tr[th='SYNC-01']/td")]
    assert sorted(cells) == ["fail", "fail", "pass", "pass"]


def test_what_came_and_went_on_the_same_versions_stands_aside(tmp_path: Path) -> None:
    text = page_text(*filled(tmp_path))
    assert text.startswith("<!doctype html>")
    document = html.fromstring(text)
    (aside,) = document.xpath("//details[summary[contains(., 'on the same versions')]]")
    assert "2 times something failed and passed again" in aside.text_content()
    assert aside.xpath(".//tbody/tr/th/text()") == ["ERR-02"] * 2
    (still,) = document.xpath("//tr[th='ERR-02'][td/span[.='still fails']]")
    assert not still.xpath("ancestor::details")


def test_nothing_is_fetched_and_nothing_escapes(tmp_path: Path) -> None:
    text = page_text(*filled(tmp_path))
    document = html.fromstring(text)
    assert not document.xpath("//link | //img | //iframe | //script[@src]")
    assert "url(http" not in text
    assert NASTY not in text
    assert len(document.xpath("//script")) == 1


def test_inconclusive_points_are_hollow(tmp_path: Path) -> None:
    runs = [run(0, latency(2.0)), run(1, latency(3.0, outcome=Outcome.INCONCLUSIVE)), run(2, latency(2.0))]
    with HistoryDatabase(None) as database:
        collected = collect(database, [write_all(tmp_path / "ci", runs)])
        document = html.fromstring(page_text(overview(database), collected))
    (figure,) = document.xpath("//figure")
    assert "1 inconclusive or disturbed (hollow)" in figure.xpath("./figcaption")[0].text_content()
    hollow = figure.xpath(".//*[local-name()='use'][contains(@style, 'fill-opacity: 0;')]")
    assert len(hollow) == 3  # one run, three quantiles


def test_left_out_runs_are_named(tmp_path: Path) -> None:
    history, collected = filled(tmp_path)
    document = html.fromstring(
        page_text(history, type(collected)(0, 0, 0, (LeftOut("x.jsonl", "unfinished"),)))
    )
    assert "x.jsonl: unfinished" in document.xpath("//*[@role='alert']")[0].text_content()


def test_more_lines_than_drawings_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "MOST_FIGURES", 1)
    runs = [run(0, *(latency(2.0, model=f"model-{number}") for number in range(3)))]
    with HistoryDatabase(None) as database:
        collected = collect(database, [write_all(tmp_path / "ci", runs)])
        document = html.fromstring(page_text(overview(database), collected))
    assert len(document.xpath("//figure//*[local-name()='svg']")) == 1
    assert len(document.xpath("//figure")) == 3
    assert "2 further lines of latency are in tables only" in document.text_content()


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "h.html").mkdir()
    with pytest.raises(ConfigurationError, match=r"--html .*h\.html"):
        write_page(tmp_path / "h.html", *filled(tmp_path))


# In Chromium


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started_browser(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("history")
    write_page(folder / "h.html", *filled(folder))
    return (folder / "h.html").as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    browser.get(address)
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def lines_shown(page: Any) -> list[str]:
    rows = "[...document.querySelectorAll('table.filtered > tbody > tr:not(.version)')]"
    found: list[str] = page.execute_script(
        f"return {rows}.filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    )
    return found


def test_lines_are_filtered_by_keyboard(page: Any) -> None:
    everything = lines_shown(page)
    field = page.find_element("id", "filter-text")
    field.send_keys("cpu writes and rknn_mem_sync")  # the text of SYNC-01
    assert set(lines_shown(page)) == {"SYNC-01"}
    assert page.find_element("id", "filter-count").text.endswith(f"of {len(everything)} lines")
    page.find_element("css selector", "#filters button[type=reset]").click()
    assert page.execute_script("return new Promise(r => setTimeout(() => r(true), 50))")
    assert lines_shown(page) == everything


def test_details_open_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    summary = page.find_element("css selector", "td details summary")
    summary.send_keys(Keys.ENTER)
    assert page.find_element("css selector", "td details").get_attribute("open")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out_of_the_history(page: Any, width: int) -> None:
    content, window = widths(page, width)
    assert content <= window


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_history_can_be_read_in_both_schemes(page: Any, scheme: str) -> None:
    ratios = contrasts(page, scheme)
    assert any(kind.startswith("text") for kind in ratios)  # the drawings' own words
    assert {kind: ratio for kind, ratio in ratios.items() if ratio < 4.5} == {}
