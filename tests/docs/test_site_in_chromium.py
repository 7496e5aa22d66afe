"""The site in a real browser: the search finds things, and nothing is asked of another host."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docs.test_site import build
from markdown_blocks import CLONE
from page.browsers import started_browser

pytest.importorskip("material", reason="pip install 'pytest-rknpu[docs]'")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from started_browser(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where the site is served."""
    assert build(CLONE / ".mkdocs.yml", tmp_path).returncode == 0
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def test_the_search_finds_a_key_and_nothing_leaves_the_host(browser: Any, address: str) -> None:
    browser.get(f"{address}index.html?q=limit_s")
    found: list[str] = []
    deadline = time.monotonic() + 30
    links = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
    while not found and time.monotonic() < deadline:
        threading.Event().wait(0.2)
        found = browser.execute_script(links)
    assert any("boards-reference.html" in link for link in found), found
    browser.get(f"{address}architecture.html")
    assert browser.execute_script(
        "return document.querySelector('img[src=\"architecture.svg\"]').naturalWidth"
    )
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert fetched
    assert [name for name in fetched if not name.startswith((address, "data:"))] == []
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
