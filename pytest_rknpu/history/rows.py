"""A run as the database holds it: pure, but for the numbers that stand for names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_rknpu.history.versions import stored, united, version_set
from pytest_rknpu.report.matrix import matrix_of
from pytest_rknpu.report.node_ids import suite_test
from pytest_rknpu.report.results import Result, Results
from pytest_rknpu.report.timed import disturbances, timed_runs
from pytest_rknpu.verdict import Outcome, sendable

_LONGEST_MESSAGE = 300
_TOLD = frozenset({Outcome.PASS, Outcome.SKIP})
Row = tuple[Any, ...]


class Number(Protocol):
    """Gives the number that stands for a row of a table of names."""

    def __call__(self, table: str, columns: tuple[str, ...], values: tuple[str, ...]) -> int:
        """The number of the row with these values, made where there is none yet."""


@dataclass(frozen=True)
class Rows:
    """Rows by table, each without the number of its run."""

    result: list[Row]
    cell: list[Row]
    held: list[Row]
    latency: list[Row]


@dataclass(frozen=True)
class _Item:
    result: Result
    board: int
    test: int
    versions: Mapping[str, str]
    versions_number: int
    requirements: int


def rows_of(results: Results, moment: int, number: Number) -> Rows:
    """Everything that is kept of a run that started at ``moment`` (s since 1970).

    Raises ConfigurationError for samples that are none.
    """
    items = [_item(results, result, number) for result in results.tests]
    return Rows(
        result=[_result_row(item, moment) for item in items],
        cell=list(_cells(items)),
        held=list(_held(items, number)),
        latency=[row for item in items if item.result.samples for row in _latency(item)],
    )


def _item(results: Results, result: Result, number: Number) -> _Item:
    versions = version_set(result.versions, results.run)
    board = tuple(sendable(text or "") for text in (result.board, result.soc, result.evidence, result.ran_on))
    return _Item(
        result=result,
        board=number("board", ("name", "soc", "evidence", "ran_on"), board),
        test=number("test", ("name",), (sendable(suite_test(result.nodeid)),)),
        versions=versions,
        versions_number=number("versions", ("said",), (stored(versions),)),
        requirements=number("requirements", ("ids",), (json.dumps(result.requirement),)),
    )


def _result_row(item: _Item, moment: int) -> Row:
    result = item.result
    message = "" if result.outcome in _TOLD else sendable(result.message)[:_LONGEST_MESSAGE]
    return (
        item.board,
        item.test,
        item.versions_number,
        item.requirements,
        str(result.outcome),
        result.seed,
        int(result.tried),
        message,
        moment,
    )


def _cells(items: list[_Item]) -> Iterator[Row]:
    """What each requirement came to on each board, as the run's own matrix has it."""
    for board in dict.fromkeys(item.board for item in items):
        own = [item.result for item in items if item.board == board]
        for requirement, by_board in matrix_of(own).items():
            for cell in by_board.values():
                yield board, sendable(requirement), str(cell.outcome), cell.deciding, cell.tests


def _held(items: list[_Item], number: Number) -> Iterator[Row]:
    """The versions that a board had in this run."""
    for board in dict.fromkeys(item.board for item in items):
        said = united(item.versions for item in items if item.board == board)
        yield board, number("versions", ("said",), (stored(said),))


def _latency(item: _Item) -> Iterator[Row]:
    from pytest_rknpu.measure.latency import quantile_figures
    from pytest_rknpu.measure.quantiles import DEFAULT_ALPHA, QUANTILES

    for runs in timed_runs([item.result]):
        for quantile in QUANTILES:
            figures = quantile_figures(runs.processes, quantile, DEFAULT_ALPHA)
            yield (
                item.board,
                item.test,
                item.versions_number,
                item.requirements,
                sendable(runs.model),
                sendable(runs.core_mask or ""),
                str(item.result.outcome),
                "; ".join(disturbances(item.result)),
                len(runs.processes),
                runs.count,
                quantile,
                figures.value,
                _finite(figures.bounds.lower),
                _finite(figures.bounds.upper),
            )


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
