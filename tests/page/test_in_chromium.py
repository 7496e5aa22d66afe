"""The page in a real browser: no errors; filters and cells work by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page.browsers import contrasts, started_browser, widths
from page.pages import large, small

from pytest_rknpu.report.page import write_page


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started_browser(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Any:
    browser.get(write_page(tmp_path, small()).as_uri())
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def rows_shown(browser: Any) -> list[str]:
    rows = "[...document.querySelectorAll('#matrix-table tbody tr')]"
    script = f"return {rows}.filter(r => !r.hidden).map(r => r.dataset.requirement)"
    found: list[str] = browser.execute_script(script)
    return found


def choose(browser: Any, field: str, value: str) -> None:
    browser.execute_script(
        "const f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('input', {bubbles: true}))",
        field,
        value,
    )


def test_filters(page: Any) -> None:
    everything = rows_shown(page)
    assert "SYNC-01" in everything
    choose(page, "filter-text", "cpu reads the new bytes")
    assert rows_shown(page) == ["SYNC-02"]
    choose(page, "filter-text", "")
    choose(page, "filter-outcome", "waived")
    assert rows_shown(page) == ["MEM-02", "SYNC-07"] or set(rows_shown(page)) >= {"SYNC-07"}
    choose(page, "filter-board", "alpha")
    assert "SYNC-07" not in rows_shown(page)
    heads = page.execute_script(
        "return [...document.querySelectorAll('#matrix-table thead th')].filter(h => !h.hidden).length"
    )
    assert heads == 2
    page.find_element("css selector", "#filters button[type=reset]").click()
    page.implicitly_wait(1)
    assert page.execute_script("return new Promise(r => setTimeout(() => r(true), 50))")
    assert rows_shown(page) == everything


def test_a_cell_shows_its_tests(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    button = page.find_element("css selector", "button[data-row='SYNC-01'][data-column='1']")
    button.send_keys(Keys.ENTER)  # by keyboard
    detail = page.find_element("id", "detail")
    assert detail.is_displayed()
    assert "SYNC-01 on beta: 1 tests" in detail.text
    assert "actual   00ff2233" in detail.text
    assert page.execute_script("return document.activeElement.id") == "detail-title"


def test_what_boards_say_stays_text(page: Any) -> None:
    page.find_element("css selector", "button[data-row='SYNC-02'][data-column='1']").click()
    assert "document.title" in page.find_element("id", "detail").text
    assert page.title.startswith("pytest-rknpu")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_sticks_out(page: Any, width: int) -> None:
    """Wide tables scroll within themselves, the page does not."""
    content, window = widths(page, width)
    assert content <= window


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page: Any, scheme: str) -> None:
    """Contrast of each kind of text with its ground, by WCAG's formula: 4.5 at least."""
    ratios = contrasts(page, scheme)
    assert len(ratios) > 5
    assert {kind: ratio for kind, ratio in ratios.items() if ratio < 4.5} == {}


def test_a_large_farm_opens(browser: Any, tmp_path: Path) -> None:
    """100 boards, 60 requirements. How long it takes is measured in benchmarks/report_page.py."""
    browser.get(write_page(tmp_path, large()).as_uri())
    assert len(rows_shown(browser)) == 60
    choose(browser, "filter-board", "board-042")
    browser.find_element("css selector", "button[data-row='SYNC-01'][data-column='42']").click()
    assert "2 tests" in browser.find_element("id", "detail-title").text
