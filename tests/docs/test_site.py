"""The documentation as a site: built with warnings as errors, complete, and without the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
from markdown_blocks import CLONE

pytestmark = pytest.mark.skipif(
    find_spec("material") is None,
    reason="mkdocs-material is not installed; pip install 'pytest-rknpu[docs]'",
)

# Where a browser fetches something without being asked to.
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Fetches(HTMLParser):
    """Collects what a page fetches by itself, and whether it has diagrams that a script would draw."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.classes.update((values.get("class") or "").split())
        address = values.get(FETCHED.get(tag, ""))
        if address and values.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(address)


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build as CI does; with --quiet nothing would be strict: warnings are then not even counted."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "--config-file", str(config), "--site-dir", str(site)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = build(CLONE / ".mkdocs.yml", folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_there_and_can_be_found(site: Path) -> None:
    pages = {page.stem for page in (CLONE / "docs").glob("*.md")}
    assert {page.stem for page in site.glob("*.html")} - {"404"} == pages
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in pages:
        assert f'"location":"{page}.html' in index
        assert f'href="{page}.html"' in home or page == "index", f"{page} is not in the navigation"
    assert not list(site.rglob("*.py"))


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.glob("*.html"):
        found = Fetches()
        found.feed(page.read_text(encoding="utf-8"))
        assert found.addresses
        assert [address for address in found.addresses if re.match(r"(https?:)?//", address)] == []
        assert "mermaid" not in found.classes, "its script would come from a content delivery network"
    for style in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8"))


def test_broken_links_fail_the_build(tmp_path: Path) -> None:
    """A page, a heading and a picture that are not there, and a page that nothing leads to."""
    shutil.copytree(CLONE / "docs", tmp_path / "docs")
    shutil.copy(CLONE / ".mkdocs.yml", tmp_path)
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n", encoding="utf-8")
    with (tmp_path / "docs" / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n[a](no-such-page.md) [b](boards.md#no-such-heading) ![c](no-such.svg)\n")
    built = build(tmp_path / ".mkdocs.yml", tmp_path / "site")
    assert built.returncode == 1
    for complaint in ("no-such-page.md", "no-such-heading", "no-such.svg", "lost.md"):
        assert complaint in built.stderr
