"""What a run says at the terminal: which boards at the start, what is known of them at the end."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_rknpu import __version__
from pytest_rknpu.farm.run import Run
from pytest_rknpu.report.matrix import Line, matrix_lines
from pytest_rknpu.report.not_tried import quarantine_lines
from pytest_rknpu.report.properties import versions_in_brief
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome

_MARKUP: Mapping[Outcome, Mapping[str, bool]] = {
    Outcome.PASS: {"green": True},
    Outcome.FAIL: {"red": True, "bold": True},
    Outcome.SKIP: {"yellow": True},
    Outcome.WAIVED: {"yellow": True},
    Outcome.INCONCLUSIVE: {"purple": True},
    Outcome.INFRA: {"purple": True, "bold": True},
    Outcome.HARNESS: {"purple": True, "bold": True},
}

# How each outcome that is neither passed, failed nor skipped to pytest is shown while the run goes on.
_STATUS: Mapping[str, tuple[str, str, tuple[str, Mapping[str, bool]]]] = {
    "inconclusive": ("error", "?", ("INCONCLUSIVE", {"purple": True})),
    "infra": ("error", "I", ("INFRA", {"purple": True})),
    "harness": ("error", "H", ("HARNESS", {"purple": True})),
    "waived": ("skipped", "w", ("WAIVED", {"yellow": True})),
}

_LEGEND: Mapping[Outcome, str] = {
    Outcome.FAIL: "fail: the board broke the requirement",
    Outcome.SKIP: "skip: does not apply, or lacks what it needs; the reason is listed",
    Outcome.WAIVED: "waived: not met, in a way that is known and recorded",
    Outcome.INCONCLUSIVE: "inconclusive: too little evidence to tell",
    Outcome.INFRA: "infra: board, link or power failed, nothing is known",
    Outcome.HARNESS: "harness: the test or this package is at fault",
}

_FAILURES_SHOWN = 5
_LINES_PER_FAILURE = 3


def status_of(outcome: str) -> tuple[str, str, tuple[str, Mapping[str, bool]]] | None:
    """Category, letter and word for pytest; None where pytest's own will do."""
    return _STATUS.get(outcome)


def header_lines(run: Run) -> list[str]:
    """The plugin, the seed and the boards, with what is known of them before they are opened."""
    origin = run.origin
    lines = [f"rknpu: {__version__}, seed {origin.seed}, effort {run.effort}, run {origin.run_id}"]
    width = max(len(board.name) for board in run.boards)
    for pool in run.pools:
        board = pool.board
        known = [f"{board.name:{width}}  {board.soc}, {board.evidence}"]
        if pool.shared:
            known.append(f"whichever is free of {', '.join(member.name for member in pool.boards)}")
        if board.runtime_version:
            known.append(f"runtime {board.runtime_version}")
        if board.driver_version:
            known.append(f"driver {board.driver_version}")
        if board.faults:
            known.append(f"FAULTS SEEDED: {', '.join(board.faults)}")
        if board.latency_model is not None:
            known.append(f"LATENCY PLAYED: {board.latency_model}")
        lines.append(f"rknpu: board {', '.join(known)}")
    lines += [f"rknpu: WARNING {run.file.path}: {warning}" for warning in run.file.warnings]
    return lines


def write_summary(
    terminal: pytest.TerminalReporter, run: Run, results: Sequence[Result], left: Sequence[str]
) -> None:
    """The end of a run: matrix, boards, failures with their replay, and the lines that are ``left``."""
    terminal.section("rknpu", sep="=")
    width = terminal._tw.fullwidth  # no public name
    for line in matrix_lines(results, width):
        _write(terminal, line)
    for text in _legend_lines(results, width):
        terminal.write_line(text)
    for text in _board_lines(results):
        terminal.write_line(text)
    for text in quarantine_lines(results):
        terminal.write_line("")
        terminal.write_line(printable(text))
    for text in _failure_lines(results, run, terminal.config):
        terminal.write_line(text)
    for text in left:
        terminal.write_line(text)


def replay_command(run: Run, nodeid: str, config: pytest.Config) -> str:
    """The command that runs one test again, with the same seed, from the folder of this run."""
    here = config.invocation_params.dir
    path, separator, rest = nodeid.partition("::")
    if (config.rootpath / path).exists():
        words = ["pytest", f"{os.path.relpath(config.rootpath / path, here)}{separator}{rest}"]
    else:  # `rknpu run`: node ids are relative to the shipped suites, and the seed depends on them
        words = ["rknpu", "run", "--rknpu-only", nodeid]
    if run.boards_file is not None:
        words += ["--boards", os.path.relpath(run.boards_file, here)]
    words += ["--rknpu-seed", str(run.origin.seed)]
    if run.effort != "normal":
        words += ["--rknpu-effort", str(run.effort)]
    if run.latency_model is not None:
        words += ["--rknpu-latency-model", run.latency_model]
    if run.per_soc:
        words += ["--rknpu-per", "soc"]
    chosen = (("--board", run.globs), ("--soc", run.socs), ("--tag", run.tags), ("--rknpu-fault", run.faults))
    for option, values in chosen:
        for value in values:
            words += [option, value]
    return shlex.join(words)


def _write(terminal: pytest.TerminalReporter, line: Line) -> None:
    for piece in line:
        terminal.write(piece.text, **(_MARKUP[piece.outcome] if piece.outcome else {}))
    terminal.write_line("")


def _board_lines(results: Sequence[Result]) -> Iterator[str]:
    """Each board's evidence and versions, and what they amount to: software never speaks of silicon."""
    for board in dict.fromkeys(result.board for result in results if result.board):
        own = [result for result in results if result.board == board]
        versions = next((result.versions for result in reversed(own) if result.versions), {})
        yield ""
        ran_on = sorted({result.ran_on for result in own if result.ran_on})
        by = f" on {', '.join(ran_on)}" if ran_on else ""
        yield f"{board}: {own[0].soc}, evidence {own[0].evidence}; {_amounts_to(own)}{by}"
        if versions:
            yield f"  {versions_in_brief(versions)}"


def _amounts_to(own: Sequence[Result]) -> str:
    tried = {id for result in own for id in result.requirement}
    shown = {id for result in own if result.outcome is Outcome.PASS for id in result.requirement}
    unmet = [result for result in own if result.outcome.red or result.outcome is Outcome.WAIVED]
    shown -= {id for result in unmet for id in result.requirement}
    count = f"{len(shown)} of {len(tried)} requirements shown" if tried else "no requirement tried"
    if own[0].evidence == "hardware":
        return count
    return f"{count} in software, which says nothing about silicon"


def _failure_lines(results: Sequence[Result], run: Run, config: pytest.Config) -> Iterator[str]:
    red = [result for result in results if result.outcome.red and result.tried]
    for result in red[:_FAILURES_SHOWN]:
        yield ""
        yield " ".join([str(result.outcome).upper(), *result.requirement, result.nodeid])
        lines = [printable(line) for line in result.message.splitlines()]
        yield from (f"  {line}" for line in lines[:_LINES_PER_FAILURE])
        if len(lines) > _LINES_PER_FAILURE:
            yield f"  ... {len(lines) - _LINES_PER_FAILURE} more lines"
        yield f"  again: {replay_command(run, result.nodeid, config)}"
    if len(red) > _FAILURES_SHOWN:
        yield ""
        yield f"... and {len(red) - _FAILURES_SHOWN} more that did not pass"


def printable(text: str) -> str:
    """One line without anything that a terminal would obey: a board's log may hold all sorts of bytes."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "?" for letter in text)


def _legend_lines(results: Sequence[Result], width: int) -> list[str]:
    """The words of the matrix that are not plain, if it has any."""
    met = {result.outcome for result in results}
    words = [text for outcome, text in _LEGEND.items() if outcome in met]
    return ["", *textwrap.wrap("; ".join(words), max(20, width - 1))] if words else []
