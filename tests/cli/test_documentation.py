"""What the documentation says to type works, and what it points to is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_blocks import blocks

from pytest_rknpu.cli.app import application

CLONE = Path(__file__).parents[2]
PAGES = [CLONE / "README.md", *sorted((CLONE / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_options_that_are_named_exist(pytestconfig: pytest.Config) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"--rknpu-[a-z]+", text))
    assert named
    assert named <= set(re.findall(r"--rknpu-[a-z]+", pytestconfig._parser.optparser.format_help()))


def test_commands_that_are_named_exist(rknpu) -> None:
    """And every command there is has its place in the documentation."""
    commands = application.registered_commands
    there = {command.name or getattr(command.callback, "__name__", "") for command in commands}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:^ *|`|\$ |/bin/)rknpu ([a-z]+(?:-[a-z]+)*)", text, re.MULTILINE))
    assert named == there
    for command in named:
        assert rknpu(command, "--help").code == 0


def words_of_table(page: str, heading: str) -> set[str]:
    """The words in the first column of the table under a heading."""
    text = (CLONE / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    rows = re.findall(r"^\| `?(\w+)`?[^|]*\|", text.partition("\n## ")[0], re.MULTILINE)
    return set(rows)


def test_fixtures_markers_and_capabilities_are_all_there() -> None:
    from pytest_rknpu import fixtures
    from pytest_rknpu.verdict import CAPABILITIES

    types = {name for name in fixtures.__all__ if name[0].isupper()}
    assert words_of_table("writing-a-suite.md", "Fixtures") - {"fixture"} == set(fixtures.__all__) - types
    text = (CLONE / "docs" / "writing-a-suite.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(\w+)`", text.partition("The words:")[2].partition("|")[0])
    assert set(listed) == set(CAPABILITIES)


def test_outcomes_are_all_there() -> None:
    from pytest_rknpu.verdict import Outcome

    assert words_of_table("verdicts.md", "Outcomes") >= {str(outcome) for outcome in Outcome}


def test_rooms_use_what_the_architecture_says() -> None:
    text = (CLONE / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| *([\w, ]*) *\|$", text, re.MULTILINE)
    documented = {room: set(re.findall(r"\w+", uses)) for room, uses in rows}
    assert documented == imports_between_rooms(), "bring the table of docs/architecture.md along"


def imports_between_rooms() -> dict[str, set[str]]:
    """Room to the rooms that it imports anywhere, also within functions; ``errors`` is everybody's."""
    package = CLONE / "pytest_rknpu"
    found: dict[str, set[str]] = {}
    for file in package.rglob("*.py"):
        room = file.relative_to(package).parts[0].removesuffix(".py")
        modules = re.findall(
            r"^\s*(?:from|import) pytest_rknpu(?: import (\w+)|\.(\w+))", file.read_text(), re.MULTILINE
        )
        found.setdefault(room, set()).update(first or second for first, second in modules)
    rooms = found.keys() - {"__init__", "errors"}
    return {room: (found[room] & rooms) - {room} for room in rooms}


def quick_start_commands() -> list[str]:
    section = (
        (CLONE / "README.md").read_text(encoding="utf-8").partition("## Quick start")[2].partition("\n## ")[0]
    )
    return [line.strip() for line in section.splitlines() if line.startswith("    ")]


def test_the_quick_start_is_two_commands() -> None:
    first, second = quick_start_commands()
    assert shlex.split(first)[:4] == ["python3", "-m", "venv", ".venv"]
    assert "pytest suites" in first
    assert second == ".venv/bin/pytest tests"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The suite of docs/writing-a-suite.md, as a user would save it."""
    (code,) = (
        block.text for block in blocks(CLONE / "docs" / "writing-a-suite.md") if "def test_" in block.text
    )
    file = tmp_path / "test_second_write.py"
    file.write_text(code)
    return file


@pytest.mark.parametrize(
    ("fault", "outcomes"),
    [
        (None, {"emu-rk3588": "pass", "emu-rk3576": "pass", "emu-rv1106": "pass"}),
        (
            "sync-to-device-dropped",
            {"emu-rk3588": "fail", "emu-rk3576": "fail", "emu-rv1106": "fail"},
        ),
    ],
)
def test_the_example_of_a_suite(example: Path, fault: str | None, outcomes: dict[str, str]) -> None:
    arguments = ["--boards", str(CLONE / "boards.toml"), "--board", "emu-*", "--rknpu-report", "report"]
    arguments += ["--rknpu-fault", fault] if fault else []
    subprocess.run(
        [sys.executable, "-m", "pytest", example.name, *arguments],
        cwd=example.parent,
        capture_output=True,
        timeout=120,
        check=False,
    )
    lines = (example.parent / "report" / "results.jsonl").read_text().splitlines()[1:]
    assert {result["board"]: result["outcome"] for result in map(json.loads, lines)} == outcomes
