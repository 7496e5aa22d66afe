"""One test for each way in which a test can end, and each place where that is told; see docs/verdicts.md.

Without xdist and with two workers: the terminal, results.jsonl, the JUnit file of each board, pytest's own
JUnit file, and the exit code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest
from lxml import etree
from plugin.project import Project
from plugin.schemas import properties_of, results_validator, validate_junit

TODAY = datetime.now(timezone.utc).date()


@dataclass(frozen=True)
class Ending:
    """A test of that body on that board, and what has to be read of it where.

    ``word`` and ``letter`` are those of the terminal, ``board_junit`` is the element of our JUnit file and
    its type, ``junit`` that of pytest's own file. ``cell`` is what the matrix says, ``exit_code`` that of a
    run of this test (and, where it is a skip, of one that passes).
    """

    body: str
    outcome: str
    word: str
    letter: str
    board_junit: tuple[str, str | None] | None
    junit: str | None
    cell: str
    exit_code: int
    board: str = "alpha"
    tried: bool = True


ENDINGS = {
    "passes": Ending("pass", "pass", "PASSED", ".", None, None, "pass", 0),
    "fails": Ending(
        "assert False, 'stale'", "fail", "FAILED", "F", ("failure", "fail"), "failure", "fail", 1
    ),
    "skips": Ending(
        "pytest.skip('no core')", "skip", "SKIPPED", "s", ("skipped", "skipped"), "skipped", "skip", 0
    ),
    "waived": Ending(
        "assert False, 'known'", "waived", "WAIVED", "w", ("skipped", "skipped"), "skipped", "waived", 0
    ),
    "expired": Ending(
        "assert False, 'of old'", "fail", "FAILED", "F", ("failure", "fail"), "failure", "fail", 1
    ),
    "unclear": Ending(
        "raise Inconclusive('3 of 300')",
        "inconclusive",
        "INCONCLUSIVE",
        "?",
        ("error", "inconclusive"),
        "failure",
        "inconclusive",
        1,
    ),
    "breaks": Ending("{}['key']", "harness", "HARNESS", "H", ("error", "harness"), "failure", "harness", 1),
    "loses": Ending(
        "npu.session.die()", "infra", "INFRA", "I", ("error", "infra"), "failure", "infra", 1, board="beta"
    ),
    "too_late": Ending(
        "pass",
        "infra",
        "NOT TRIED",
        "I",
        ("error", "infra"),
        "error",
        "infra",
        1,
        board="beta",
        tried=False,
    ),
}
IDS = {name: f"SYNC-{number:02}" for number, name in enumerate(ENDINGS, start=1)}


def waiver(name: str, message: str, days: int) -> str:
    return (
        f'[[waiver]]\nrequirement = "{IDS[name]}"\nboard = "alpha"\nmessage = "{message}"\n'
        f'reason = "accepted"\nexpires = {TODAY + timedelta(days=days)}\n'
    )


@pytest.fixture
def endings(project: Project) -> Project:
    """A project with all of them. The board beta is given up when it is lost for the first time."""
    lines = []
    for name, ending in ENDINGS.items():
        lines += [
            f"@pytest.mark.requirement('{IDS[name]}')",
            f"@pytest.mark.parametrize('board', ['{ending.board}'], indirect=True)",
            f"def test_{name}(npu):",
            f"    {ending.body}",
        ]
    project.tests("\n".join(lines))
    waivers = waiver("waived", "known", days=30) + waiver("expired", "of old", days=-1)
    (project.pytester.path / "waivers.toml").write_text(waivers, encoding="utf-8")
    return project


def run(project: Project, *arguments: str, workers: int = 0) -> pytest.RunResult:
    written = ("--rknpu-report", "out", "--junit-xml", "own.xml", "--rknpu-losses", "1")
    return project.run(*written, *arguments, workers=workers)


def nodeid(name: str) -> str:
    return f"test_{name}[{ENDINGS[name].board}]"


@pytest.mark.parametrize("workers", [0, 2])
def test_each_place_tells_each_ending(endings: Project, workers: int) -> None:
    done = run(endings, "-v", workers=workers)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    _, results = endings.results()
    assert set(results) == set(map(nodeid, ENDINGS))
    files = {name: endings.pytester.path / f"out/junit/{name}.xml" for name in ("alpha", "beta")}
    of_boards = {name: validate_junit(path.read_text()) for name, path in files.items()}
    own = etree.parse(str(endings.pytester.path / "own.xml"))
    for name, ending in ENDINGS.items():
        result = results[nodeid(name)]
        results_validator().validate(result)
        assert (result["outcome"], result["tried"]) == (ending.outcome, ending.tried), name
        told = of_boards[ending.board].find(f".//testcase[@name='{nodeid(name)}']")
        found = [
            (each.tag, each.get("type")) for each in told if each.tag not in ("properties", "system-out")
        ]
        assert found == ([ending.board_junit] if ending.board_junit else []), name
        (pytests,) = own.findall(f".//testcase[@name='{nodeid(name)}']")
        elements = [each.tag for each in pytests if each.tag in ("failure", "error", "skipped")]
        assert elements == ([ending.junit] if ending.junit else []), name
        for case in (told, pytests):
            properties = properties_of(case)
            assert (properties["outcome"], properties["requirement"]) == (ending.outcome, IDS[name])
        line = f"{ending.word} test_it.py::{nodeid(name)}" if workers else f"{nodeid(name)} {ending.word}"
        assert line in done.stdout.str(), name
        row = re.search(rf"^{IDS[name]} +(\S+) +(\S+)$", done.stdout.str(), re.MULTILINE)
        assert row is not None, name
        assert sorted(row.groups()) == sorted([ending.cell, "-"]), name
    assert (
        sum(int(suite.get("tests")) for each in of_boards.values() for suite in each.iter("testsuite")) == 9
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_the_end_says_what_is_behind_it(endings: Project, workers: int) -> None:
    done = run(endings, "--rknpu-seed", "5", workers=workers)
    text = done.stdout.str()
    for line in (
        f"EXPIRED waivers.toml, waiver 2 ({IDS['expired']}, board alpha): ended on",
        "board beta is in quarantine for the rest of this run: it was lost once, first by: the link ended; "
        "1 of its 2 tests were not tried",
        "rknpu probe --board beta",
    ):
        assert text.count(line) == 1, line
    again = [name for name in ENDINGS if f"again: pytest 'test_it.py::{nodeid(name)}'" in text]
    assert set(again) == {"fails", "expired", "unclear", "breaks", "loses"}
    assert "2 failed, 1 passed, 2 skipped, 3 errors, 1 not tried" in text
    _, results = endings.results()
    assert results[nodeid("waived")]["waived_by"]["original"] == "fail"
    assert "ended on" in results[nodeid("expired")]["notes"][0]


def test_each_has_its_letter(endings: Project) -> None:
    done = run(endings, "--tb", "no")
    letters = "".join(ending.letter for ending in ENDINGS.values())
    done.stdout.fnmatch_lines([f"test_it.py {letters.replace('?', '[?]')} *"])


WITH_WORKERS = (
    "passes",
    "skips",
    "waived",
    "unclear",
    "too_late",
)  # a process each; the rest fail as these do


@pytest.mark.parametrize(
    ("name", "workers"), [*((name, 0) for name in ENDINGS), *((name, 2) for name in WITH_WORKERS)]
)
def test_the_exit_code_of_each(endings: Project, name: str, workers: int) -> None:
    beside = {"skips": "passes", "too_late": "loses"}
    chosen = [name, *([beside[name]] if name in beside else [])]
    done = run(endings, "-k", " or ".join(f"test_{each}" for each in chosen), workers=workers)
    assert done.ret == ENDINGS[name].exit_code
    assert set(endings.results()[1]) == set(map(nodeid, chosen))


@pytest.mark.parametrize("workers", [0, 2])
def test_what_was_stopped_before_its_turn_is_in_no_file(endings: Project, workers: int) -> None:
    """With workers a test may be on its way when another one fails, so how many are left is not certain."""
    done = run(endings, "-x", workers=workers)
    assert done.ret == (pytest.ExitCode.INTERRUPTED if workers else pytest.ExitCode.TESTS_FAILED)
    found = set(endings.results()[1])
    missing = dict.fromkeys(("alpha", "beta"), 0)
    for name, ending in ENDINGS.items():
        missing[ending.board] += nodeid(name) not in found
    totals = {"alpha": 7, "beta": 2}
    listed = {
        board: f"{count} of {totals[board]} tests of {board}" for board, count in missing.items() if count
    }
    assert listed
    line = next(line for line in done.outlines if line.startswith("not run: "))
    assert line.endswith("; the run ended before, and they have no result")
    assert set(re.findall(r"\d+ of \d+ tests of \w+", line)) == set(listed.values())
    own = {case.get("name") for case in etree.parse(str(endings.pytester.path / "own.xml")).iter("testcase")}
    junit = endings.pytester.path / "out/junit"
    cases = {case.get("name") for file in junit.iterdir() for case in etree.parse(str(file)).iter("testcase")}
    assert own == cases == found


@pytest.mark.parametrize("workers", [0, 2])
def test_what_was_deselected_is_nowhere(endings: Project, workers: int) -> None:
    done = run(endings, "-k", "passes or skips", workers=workers)
    assert done.ret == 0
    assert set(endings.results()[1]) == {nodeid("passes"), nodeid("skips")}
    done.stdout.no_fnmatch_line("*not run*")


def test_the_same_without_pytests_terminal(endings: Project) -> None:
    done = run(endings, "-p", "no:terminal")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert {name: each["outcome"] for name, each in endings.results()[1].items()} == {
        nodeid(name): ending.outcome for name, ending in ENDINGS.items()
    }
