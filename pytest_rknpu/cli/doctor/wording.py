"""What was found, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

from pytest_rknpu.cli.doctor.examination import Examined
from pytest_rknpu.cli.doctor.finding import BOARD, HOST, Finding, Severity

FORMAT = 1
"""Of the JSON: counted up when a key changes its meaning or goes."""
_PLAIN = ("board", "reach")
"""Whether a board can be used: what its line says without another word."""


def examined_json(examined: Examined) -> str:
    """Everything; its keys are those of docs/command-line.md."""
    document = {
        "format": FORMAT,
        "usable": examined.usable,
        "boards_file": str(examined.boards_file),
        "boards": list(examined.boards),
        "findings": [asdict(finding) for finding in examined.findings],
    }
    return json.dumps(document, indent=2)


def examined_text(examined: Examined) -> str:
    """A line for each finding and one for what mends it, by place; the verdict last."""
    lines = []
    for heading, findings in groupby(examined.findings, key=_heading):
        lines += [heading, *(line for finding in findings for line in _lines(finding)), ""]
    return "\n".join([*map(_printable, lines), _verdict(examined)])


def _heading(finding: Finding) -> str:
    return "boards" if finding.where.startswith(BOARD) else finding.where


def _lines(finding: Finding) -> list[str]:
    name = finding.what
    if finding.where.startswith(BOARD):
        name = finding.where.removeprefix(BOARD) + (f", {name}" if name not in _PLAIN else "")
    lines = [f"  {finding.severity.upper():8}{name}: {finding.says}"]
    return lines if finding.mend is None else [*lines, f"          -> {finding.mend}"]


def _verdict(examined: Examined) -> str:
    problems = _of(examined, Severity.PROBLEM)
    notes = _counted(len(_of(examined, Severity.NOTE)), "note")
    if not problems:
        return f"nothing prevents a run; {notes}"
    here = sum(finding.where == HOST for finding in problems)
    where = f"{here} of this host, {len(problems) - here} of boards and files"
    return f"{_counted(len(problems), 'problem')} ({where}); {notes}"


def _of(examined: Examined, severity: Severity) -> Sequence[Finding]:
    return [finding for finding in examined.findings if finding.severity is severity]


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def _printable(line: str) -> str:
    """Without anything that a terminal would obey: programs and files may say anything."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)
