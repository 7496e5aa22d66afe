"""What the documentation takes from the code is what the code says now."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from cli.test_documentation import imports_between_rooms
from markdown_blocks import CLONE

from pytest_rknpu.verdict import CHAPTERS, REQUIREMENTS

DOCS = CLONE / "docs"
CATALOGUE = (DOCS / "catalogue.md").read_text(encoding="utf-8")


def test_pages_are_current() -> None:
    """In a process of its own: the catalogue is made by collecting suites/ in a pytest of its own."""
    script = (
        "import json, runpy\n"
        f"made = runpy.run_path({str(DOCS / 'generate.py')!r})\n"
        "stale = [page.name for page, text in made['pages']().items() if page.read_text('utf-8') != text]\n"
        "print(json.dumps(stale))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(ended.stdout) == [], "run: python docs/generate.py"


def test_the_catalogue_has_every_chapter_and_requirement() -> None:
    for name, chapter in CHAPTERS.items():
        assert f"\n## {name}: {chapter.title}\n" in CATALOGUE
    rows = [line.split(" | ")[0].removeprefix("| ") for line in CATALOGUE.splitlines() if "-" in line[:10]]
    assert [row for row in rows if row in REQUIREMENTS] == list(REQUIREMENTS)
    assert {requirement.chapter for requirement in REQUIREMENTS.values()} == set(CHAPTERS)


@pytest.mark.parametrize(
    ("requirement", "evidence"),
    [
        ("SYNC-01", "hardware, vendor-runtime, emulator"),  # a C runtime
        ("MEM-12", "simulator"),  # what is read from a build log
        ("LAT-01", "hardware, hardware (connected)"),  # time
        ("ACC-01", "hardware, hardware (connected), simulator, emulator"),  # arithmetic
    ],
)
def test_evidence_is_what_fixtures_and_markers_say(requirement: str, evidence: str) -> None:
    (row,) = (line for line in CATALOGUE.splitlines() if line.startswith(f"| {requirement} |"))
    assert row.split(" | ")[2] == evidence


def test_no_requirement_is_without_a_test() -> None:
    assert " | none |" not in CATALOGUE
    assert " | - |" not in CATALOGUE


def test_the_picture_has_every_room_and_fetches_nothing() -> None:
    text = (DOCS / "architecture.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    names = root.iter("{http://www.w3.org/2000/svg}text")
    bold = [name.text or "" for name in names if name.get("class") == "name"]
    words = {word for name in bold for word in name.replace(",", " ").split()}
    assert imports_between_rooms().keys() <= words
    assert "href" not in text
    assert text.count("http") == 1  # the name space
