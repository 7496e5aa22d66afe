"""Every command of README and docs/ is run, or is in the table of those that cannot be, with the reason."""

from __future__ import annotations

import datetime
import os
import re
from collections import Counter
from pathlib import Path

import pytest
from docs.command_words import calls, complaint
from docs.documented import TABLE, NotRun, Run
from docs.prepared import CLONE, call, make_reports, prepare
from filelock import FileLock
from markdown_blocks import PAGES, Command, blocks, commands, spans

BY_PAGE = {page.name: [found for block in blocks(page) for found in commands(block)] for page in PAGES}
ALL = [command for found in BY_PAGE.values() for command in found]

# What may be run as it stands, without an entry in the table.
PROGRAMS = (".", "cat", "jq", "ls", "pytest", "python", "rknpu", "sed")


# A code span that is a command with its words, and not the name of one.
SPOKEN = re.compile(r"(\.venv/bin/)?(rknpu|pytest|pip|python3? -m) \S")


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs that commands on runs are tried with; one for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "documented-runs"
    with FileLock(f"{folder}.lock"):
        if not (folder / "made").exists():
            (folder / "home").mkdir(parents=True)
            make_reports(folder)
            (folder / "made").touch()
    return folder


def treatment(page: str, command: Command) -> Run | NotRun:
    """What the table says of a command; without an entry it is run."""
    return TABLE.get(page, {}).get(command.text, Run())


def with_placeholders(text: str, where: Run) -> str:
    for word, meant in where.where.items():
        text = re.sub(rf"\b{word}\b", meant, text)
    return text


@pytest.mark.parametrize("page", [name for name, found in BY_PAGE.items() if found])
def test_commands_run(page: str, tmp_path: Path, reports: Path) -> None:
    """All commands of a page, in its order and in one folder; each problem is told."""
    expires = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=30)
    prepare(page, tmp_path, reports, {"expires": expires.isoformat()})
    problems, seen = [], Counter[str]()
    for command in BY_PAGE[page]:
        problem = run(page, command, tmp_path, seen[command.text])
        seen[command.text] += 1
        problems += [problem] if problem else []
    assert not problems, "\n\n".join(problems)


def run(page: str, command: Command, folder: Path, before: int) -> str | None:
    """Run a command that was run ``before`` times; what is wrong with how it ended, or None."""
    how = treatment(page, command)
    if isinstance(how, NotRun):
        return None
    ended = call(with_placeholders(command.text, how), folder, how.narrowed)
    told = f"{command.place}: {command.text}\nexit code {ended.returncode}\n{ended.stdout}"
    exits = how.in_turn[before : before + 1] if how.in_turn else how.exits
    if ended.returncode not in exits:
        return f"{told}\nexpected exit code {exits}"
    if not re.search(how.shows, ended.stdout):
        return f"{told}\nexpected to show {how.shows!r}"
    if command.output is not None and not same(command.output, ended.stdout):
        return f"{told}\nbut the page shows\n{command.output}"
    return None


def same(shown: str, actual: str) -> bool:
    """Whether the output is what a page shows: blank lines apart, and how wide gaps within a line are.

    A line of ``...`` stands for any lines, or none; within a line ``...`` is anything.
    """
    pattern = "".join(_line_pattern(line) for line in _lines(shown))
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _lines(actual))) is not None


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _line_pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"


@pytest.mark.parametrize("command", ALL, ids=lambda command: f"{command.place} {command.text[:40]}")
def test_nothing_foreign_is_run(command: Command) -> None:
    """A command without an entry in the table is one of ours, or harmless."""
    page = command.place.partition(":")[0]
    if command.text in TABLE.get(page, {}):
        return
    unknown = [name for name, *_ in calls(command.text) if name.removeprefix(".venv/bin/") not in PROGRAMS]
    assert not unknown, (
        f"{command.place}: what is to become of {command.text!r}? tests/docs/documented.py has to say it: "
        f"it would run {', '.join(unknown)}"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_that_are_named_exist(page: Path, pytestconfig: pytest.Config) -> None:
    """Also where a command is only spoken of, and where it is not run."""
    spoken = (Command(f"{page.name}:{line}", text) for line, text in spans(page) if SPOKEN.match(text))
    problems = [
        f"{command.place}: {command.text}: {problem}"
        for command in (*BY_PAGE[page.name], *spoken)
        for words in calls(command.text)
        if (problem := complaint(words, pytestconfig)) is not None
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rknpu compare a b --json", None),
        ("rknpu compare a b --jsn", "--jsn"),
        ("rknpu compare a", "run_b"),
        ("rknpu compere a b", "no command compere"),
        ("rknpu run --soc rk3588 -x", None),
        ("rknpu run --socs rk3588", "no option --socs"),
        ("pytest suites/sync -n 2 --rknpu-seed=3", None),
        ("pytest suites/snyc", "there is no suites/snyc"),
        (".venv/bin/pip install -e '.[toolkit,dev]'", None),
        ("pip install 'pytest-rknpu[toolkits]'", "there is no extra toolkits"),
        ("python -m pytest_rknpu.no_such", "no module"),
        ("A=1 true && pytest --no-such | cat", "no option --no-such"),
    ],
)
def test_a_wrong_word_is_noticed(text: str, problem: str | None, pytestconfig: pytest.Config) -> None:
    found = [told for words in calls(text) if (told := complaint(words, pytestconfig)) is not None]
    assert (found == []) if problem is None else (problem in found[0])


def test_the_table_names_no_command_that_is_not_there() -> None:
    for page, entries in TABLE.items():
        there = {command.text for command in BY_PAGE[page]}
        assert set(entries) <= there, f"{page}: {sorted(set(entries) - there)}"


@pytest.mark.parametrize(
    ("command", "how"),
    [(c, how) for page in TABLE.values() for c, how in page.items() if isinstance(how, NotRun)],
)
def test_what_is_not_run_here_has_a_reason_and_a_place(command: str, how: NotRun) -> None:
    assert len(how.reason.split()) > 3
    if how.instead is not None:
        file, text = how.instead
        assert text in (CLONE / file).read_text(encoding="utf-8"), f"{command}: {file} no longer does it"


@pytest.mark.parametrize(
    ("shown", "actual", "alike"),
    [
        ("a\n...\nb 1\n", "a\nx\n\ny\nb   1\n", True),
        ("a\n...\nb 1\n", "a\nb 1\n", True),
        ("a\n...\nb 1\n", "a\nb 2\n", False),
        ("a ... z\n", "a b z\n", True),
        ("a ... z\n", "a b y\n", False),
        ("a\n", "a\nb\n", False),
        ("b\n", "a\nb\n", False),
        ("a ... z\n", "a\nz\n", False),
    ],
)
def test_an_output_that_differs_is_noticed(shown: str, actual: str, alike: bool) -> None:
    assert same(shown, actual) is alike


def test_every_code_block_says_what_it_is() -> None:
    known = {"console", "groovy", "ini", "json", "python", "sh", "text", "toml", "xml", "yaml"}
    unknown = [
        f"{block.place}: {block.text[:60]!r}"
        for page in PAGES
        for block in blocks(page)
        if block.language not in known
    ]
    assert not unknown, "put these between fences that name a language"
