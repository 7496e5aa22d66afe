"""What a run says at the terminal: which boards at the start, what is known of them at the end."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_rknpu import __version__
from pytest_rknpu.farm.run import Run
from pytest_rknpu.report.matrix import Line, matrix_lines
from pytest_rknpu.report.not_tried import quarantine_lines
from pytest_rknpu.report.properties import versions_in_brief
from pytest_rknpu.report.remedies import next_steps
from pytest_rknpu.report.replay import replay_command
from pytest_rknpu.report.results import Result
from pytest_rknpu.verdict import Outcome

MARKUP: Mapping[Outcome, Mapping[str, bool]] = {
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
_FINDINGS_ALONE = -2  # -qq


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
    """The end of a run: matrix, boards, failures with their replay, lines that are ``left``, what to do.

    ``-v`` shows each failure, ``-vv`` with its whole message; ``-q`` explains nothing, ``-qq`` leaves what is
    ``left`` alone.
    """
    width = terminal._tw.fullwidth  # no public name
    verbosity = terminal.config.get_verbosity()
    if verbosity <= _FINDINGS_ALONE and not left:
        return
    terminal.section("rknpu", sep="=")
    texts: list[str] = []
    if verbosity > _FINDINGS_ALONE:
        for line in matrix_lines(results, width):
            _write(terminal, line)
        texts += _legend_lines(results, width) if verbosity >= 0 else []
        texts += _board_lines(results)
        for text in quarantine_lines(results):
            texts += ["", printable(text)]
        texts += _failure_lines(results, run, terminal.config)
    texts += ["", *left]
    texts += next_steps(results, run, terminal.config) if verbosity >= 0 else []
    for text in texts:
        terminal.write_line(text)


def _write(terminal: pytest.TerminalReporter, line: Line) -> None:
    for piece in line:
        terminal.write(piece.text, **(MARKUP[piece.outcome] if piece.outcome else {}))
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
    verbosity = config.get_verbosity()
    shown = red[:_FAILURES_SHOWN] if verbosity < 1 else red
    for result in shown:
        yield ""
        yield " ".join([str(result.outcome).upper(), *result.requirement, result.nodeid])
        lines = [printable(line) for line in result.message.splitlines()]
        first = lines[:_LINES_PER_FAILURE] if verbosity < 2 else lines
        yield from (f"  {line}" for line in first)
        if len(lines) > len(first):
            yield f"  ... {len(lines) - len(first)} more lines"
        yield f"  again: {replay_command(run, result.nodeid, config)}"
    if len(red) > len(shown):
        yield ""
        yield f"... and {len(red) - len(shown)} more that did not pass (-v shows them)"


def printable(text: str) -> str:
    """One line without anything that a terminal would obey: a board's log may hold all sorts of bytes."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "?" for letter in text)


def _legend_lines(results: Sequence[Result], width: int) -> list[str]:
    """The words of the matrix that are not plain, if it has any."""
    met = {result.outcome for result in results}
    words = [text for outcome, text in _LEGEND.items() if outcome in met]
    return ["", *textwrap.wrap("; ".join(words), max(20, width - 1))] if words else []
