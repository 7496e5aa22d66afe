"""What the page says, out of results: pure, so that its words can be tested without a browser."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_rknpu.report.matrix import Cell, matrix_of
from pytest_rknpu.report.page import memory_maps
from pytest_rknpu.report.page.bytes_shown import Bit, marked
from pytest_rknpu.report.properties import MAIN_VERSIONS
from pytest_rknpu.report.results import Result, Results, RunRecord
from pytest_rknpu.verdict import CHAPTERS, REQUIREMENTS, Measurement, Outcome

SOFTWARE = "software, which says nothing about silicon"


@dataclass(frozen=True)
class BoardColumn:
    """One board: what it is, and the versions that its results hold for. ``summary`` counts outcomes."""

    name: str
    soc: str
    evidence: str
    versions: Mapping[str, str]
    summary: Mapping[Outcome, int]


@dataclass(frozen=True)
class VersionRow:
    """One version on all boards; ``differs`` where those that have one have not the same."""

    title: str
    values: tuple[str, ...]
    differs: bool


@dataclass(frozen=True)
class RequirementRow:
    """One requirement: its text, where it comes from, and what came of it on each board."""

    id: str
    text: str
    source: str
    cells: tuple[Cell | None, ...]

    @property
    def tried(self) -> int:
        """On how many boards a test of it ran, or was skipped."""
        return sum(cell is not None for cell in self.cells)

    @property
    def passing(self) -> int:
        """On how many boards nothing worse than a pass came of it."""
        return sum(cell is not None and cell.outcome is Outcome.PASS for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """Figures of one kind, one line for each test: ``columns`` without board and test."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Failure:
    """A result that is not green, its message with marks, and the command that runs its test again."""

    result: Result
    message: tuple[Bit, ...]
    again: str


def board_columns(results: Results) -> list[BoardColumn]:
    """The boards, in the order of the run."""
    planned = {board.name: (board.soc, board.evidence) for board in results.run.boards}
    columns = []
    for name, (soc, evidence) in planned.items():
        own = [result for result in results.tests if result.board == name]
        versions = next((result.versions for result in reversed(own) if result.versions), {})
        summary = {outcome: sum(result.outcome is outcome for result in own) for outcome in Outcome}
        columns.append(BoardColumn(name, soc, evidence, versions, summary))
    return columns


def version_rows(boards: Sequence[BoardColumn]) -> list[VersionRow]:
    """The main versions first, then all others that any board told."""
    titles = {key: title for title, key in MAIN_VERSIONS.items()}
    others = sorted({key for board in boards for key in board.versions} - set(titles))
    rows = []
    for key in (*titles, *others):
        values = tuple(board.versions.get(key, "not recorded") for board in boards)
        if any(value != "not recorded" for value in values):
            known = {value for value in values if value not in ("not recorded", "absent")}
            rows.append(VersionRow(titles.get(key, key), values, len(known) > 1))
    return rows


def requirement_rows(results: Results, boards: Sequence[BoardColumn]) -> list[RequirementRow]:
    """Every requirement that was tried, in the catalogue's order."""
    matrix = matrix_of(results.tests)
    return [
        RequirementRow(
            id=id,
            text=REQUIREMENTS[id].text if id in REQUIREMENTS else "",
            source=_source_of(id),
            cells=tuple(row.get(board.name) for board in boards),
        )
        for id, row in matrix.items()
    ]


def _source_of(requirement: str) -> str:
    """The chapter of the catalogue, and where the user guide speaks of it."""
    chapter = CHAPTERS.get(requirement.rpartition("-")[0])
    if chapter is None:
        return ""
    return f"user guide, {chapter.guide}: {chapter.title}" if chapter.guide else chapter.title


def failures(results: Results) -> list[Failure]:
    """What is red, then what was waived."""
    order = {outcome: place for place, outcome in enumerate((Outcome.FAIL, Outcome.INCONCLUSIVE))}
    unmet = [r for r in results.tests if r.outcome.red or r.outcome is Outcome.WAIVED]
    unmet.sort(key=lambda r: (r.outcome is Outcome.WAIVED, order.get(r.outcome, len(order))))
    return [Failure(result, marked(result.message), replay_of(results.run, result)) for result in unmet]


def replay_of(run: RunRecord, result: Result) -> str:
    """The command that runs one test again with the run's seed, from the folder where the run was started.

    Where tests ran on equal boards ``board`` is their pool, no name of boards.toml: what chose them is said
    again.
    """
    command = shlex.split(run.command)
    pooled = any(word.partition("=")[0] == _PER for word in command)
    options = _kept_options(command, (*_DECIDING, *((_PER, *_CHOOSING) if pooled else ())))
    words = ["rknpu", "run", "--rknpu-only", result.nodeid, "--rknpu-seed", str(run.seed)]
    if run.effort != "normal":
        words += ["--rknpu-effort", run.effort]
    if result.board is not None and not pooled:
        words += ["--board", result.board]
    return shlex.join([*words, *options])


_DECIDING = ("--boards", "--rknpu-fault", "--rknpu-latency-model", "--rknpu-waivers", "--rknpu-baseline")
"""What decides how a test goes."""
_PER, _CHOOSING = "--rknpu-per", ("--board", "--soc", "--tag")
"""What decides where."""


def _kept_options(words: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """Those options of a command line, with their values."""
    expecting = False
    for word in words:
        name, separator, _ = word.partition("=")
        if expecting or (name in kept and separator):
            yield word
            expecting = False
        elif word in kept:
            yield word
            expecting = True


_ACCURACY = re.compile(r"(?P<output>output \d+|.+?) (?P<figure>cosine|sqnr|max_error|bias)$")


def accuracy_table(tests: Iterable[Result]) -> Table:
    """Cosine, SQNR, largest error and bias of each output, and top-1."""
    rows = []
    for result in tests:
        values = {m.name: m.value for m in result.measurements}
        outputs: dict[str, dict[str, object]] = {}
        for name, value in values.items():
            found = _ACCURACY.match(name)
            if found:
                outputs.setdefault(found["output"], {})[found["figure"]] = value
        for output, figures in outputs.items():
            cells = (
                output,
                *(_short(figures.get(key, "")) for key in ("cosine", "sqnr", "max_error", "bias")),
            )
            top1 = (_short(values.get("top-1", "")), _short(values.get("top-1 of the reference", "")))
            rows.append(_row(result, (*cells, *top1)))
    columns = ("output", "cosine", "SQNR (dB)", "largest error", "bias", "top-1", "top-1, reference")
    return Table("accuracy", "Accuracy", columns, tuple(rows))


def sparse_table(tests: Iterable[Result]) -> Table:
    """SparseRatio of each layer, by the build log."""
    rows = []
    for result in tests:
        for m in result.measurements:
            if m.name.startswith("SparseRatio of "):
                rows.append(_row(result, (m.name.removeprefix("SparseRatio of "), str(m.value))))
    return Table("sparse", "Sparse engagement", ("layer", "SparseRatio"), tuple(rows))


_PRUNED = {
    "top-1 dense": "top-1, dense",
    "top-1 pruned": "top-1, pruned",
    "top-1 flips": "flips",
    "right before, wrong now": "lost",
    "wrong before, right now": "gained",
    "McNemar p": "McNemar p",
    "loss excluded at 95%": "loss at most (95 %)",
    "declared margin": "declared margin",
}


def pruned_table(tests: Iterable[Result]) -> Table:
    """Top-1 of pruned models against the dense ones that they were pruned from."""
    rows = []
    for result in tests:
        values = {m.name: _short(m.value) for m in result.measurements}
        if "top-1 dense" in values and "top-1 pruned" in values:
            rows.append(_row(result, tuple(values.get(name, "") for name in _PRUNED)))
    return Table("pruned", "Pruned against dense", tuple(_PRUNED.values()), tuple(rows))


def memory_table(tests: Iterable[Result]) -> Table:
    """Sizes that were reported, planned or budgeted."""
    return _figures(
        tests, "memory", "Memory", lambda r, m: m.unit == "B" and _chapter(r) in ("MEM", "SPARSE")
    )


def stale_table(tests: Iterable[Result]) -> Table:
    """Stale lines that controls counted (how sensitive a board is), and how many lines tests looked at."""
    return _figures(tests, "stale", "Stale cache lines", lambda r, m: m.unit == "lines")


def _figures(tests: Iterable[Result], id: str, title: str, wanted: object) -> Table:
    assert callable(wanted)
    rows = [
        _row(result, (m.name, _short(m.value), m.unit))
        for result in tests
        for m in result.measurements
        if wanted(result, m)
    ]
    return Table(id, title, ("figure", "value", "unit"), tuple(rows))


def _chapter(result: Result) -> str:
    return result.requirement[0].rpartition("-")[0] if result.requirement else ""


def _row(result: Result, cells: tuple[str, ...]) -> tuple[str, ...]:
    return (result.board or "", result.nodeid.rpartition("::")[2], *cells)


def _short(value: object) -> str:
    """A figure as people read it."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _figure(measured: Measurement) -> str:
    """A figure in a list of figures; what is long stands elsewhere."""
    return "shown under Memory maps" if measured.name == memory_maps.MEASUREMENT else _short(measured.value)


def tables(tests: Sequence[Result]) -> list[Table]:
    """The tables that have any line."""
    made = (
        accuracy_table(tests),
        pruned_table(tests),
        sparse_table(tests),
        memory_table(tests),
        stale_table(tests),
    )
    return [table for table in made if table.rows]


def details(tests: Iterable[Result], boards: Sequence[BoardColumn]) -> list[list[object]]:
    """Every test, as the page's script gets it: plain lists, since there may be tens of thousands."""
    places = {board.name: place for place, board in enumerate(boards)}
    return [
        [
            result.nodeid,
            places.get(result.board or "", -1),
            list(result.requirement),
            str(result.outcome),
            round(result.duration_s, 3),
            result.message,
            list(result.notes),
            [[m.name, _figure(m), m.unit] for m in result.measurements],
            result.seed,
        ]
        for result in tests
    ]
