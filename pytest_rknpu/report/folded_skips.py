"""The short summary of skips, ours folded: a line for each cause, with how many tests it left out, and where.

pytest folds skips by place and reason. More than a third of a run may be skipped, and its reasons name the
board or the SoC, so that its list has a line for nearly each of both. Folding is a matter of that list alone:
the reports, and all that is made of them, keep each skip with its reason. ``-v`` and ``-rs`` show pytest's
own list, and so does ``--no-fold-skipped``.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_rknpu.report.remedies import without_remedy

_BOARDS_SHOWN = 3
_KNOWN = "Known: "  # how a suite that waives a deviation introduces what it knows of it
_KNOWN_TO_SUITE = "known to the suite"


@dataclass(frozen=True)
class Skip:
    """One skipped or waived test. ``board`` and ``soc`` are "" where it is about none.

    ``waiver`` is what its report says of the waiver that covers it, "" where it was skipped.
    """

    reason: str
    board: str
    soc: str
    waiver: str = ""

    @property
    def cause(self) -> str:
        """The reason without what to do about it; of a waived failure what is known, not how it failed."""
        if self.waiver == _KNOWN_TO_SUITE:
            return f"waived: {self.reason.rpartition(_KNOWN)[2].removeprefix('waived: ')}"
        if self.waiver:
            return f"waived by {self.waiver}"
        reason = without_remedy(self.reason)
        return reason.removeprefix(f"{self.board}: ") if self.board else reason

    @property
    def kind(self) -> str:
        """The cause without the names of board and SoC: equal for what equal boards lack."""
        return _without_name(_without_name(self.cause, self.board, "<board>"), self.soc, "<SoC>")


def _without_name(text: str, name: str, instead: str) -> str:
    return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", instead, text) if name else text


def fold(skips: Sequence[Skip]) -> list[tuple[str, str, list[int]]]:
    """Boards, cause, and the places in ``skips`` of those that have it; in the order of the first ones."""
    kinds: dict[str, list[int]] = {}
    for place, skip in enumerate(skips):
        kinds.setdefault(skip.kind, []).append(place)
    folded = []
    for kind, places in kinds.items():
        causes = {skips[place].cause for place in places}
        boards = listed(skips[place].board for place in places)
        folded.append((boards, causes.pop() if len(causes) == 1 else kind, places))
    return folded


def listed(boards: Iterable[str]) -> str:
    """Some of the boards by name, and how many more there are."""
    names = [name or "no board" for name in sorted(set(boards))]  # workers report in any order
    if len(names) <= _BOARDS_SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_BOARDS_SHOWN])} and {len(names) - _BOARDS_SHOWN} more"


def wants_folding(config: pytest.Config) -> bool:
    """Whether the list of skips is shown for completeness (``-ra``), and nobody asked for each of them."""
    option = config.option
    asked = "s" in option.reportchars or option.verbose > 0
    return not asked and getattr(option, "fold_skipped", True)


@contextmanager
def folded_skips(terminal: pytest.TerminalReporter) -> Generator[None, None, None]:
    """While pytest writes its list it sees our skips folded; the numbers of its last line stay what they are.

    Skips that are not ours keep their lines, behind ours.
    """
    skipped = terminal.stats.get("skipped", [])
    ours = [report for report in skipped if hasattr(report, "rknpu")]
    if not ours or not getattr(terminal.config.option, "fold_skipped", True):
        yield
        return
    others = [report for report in skipped if not hasattr(report, "rknpu")]
    shown = _folded(ours) if wants_folding(terminal.config) else [_anonymous(report) for report in ours]
    terminal.stats["skipped"] = [*shown, *others]
    try:
        yield
    finally:
        terminal.stats["skipped"] = skipped


def _folded(reports: Sequence[Any]) -> list[Any]:
    """Copies that pytest folds in our way: it takes what is alike in place, line and reason together."""
    copies = [_anonymous(report) for report in reports]
    for boards, cause, places in fold([_skip(report) for report in reports]):
        for place in places:
            copies[place].longrepr = (boards, None, cause)
    return copies


def _anonymous(report: Any) -> Any:
    """A copy that nobody takes for ours: pytest gives all lines the word of the first, be it WAIVED."""
    anonymous = copy.copy(report)
    del anonymous.rknpu
    return anonymous


def _skip(report: Any) -> Skip:
    properties: Mapping[str, str] = dict(report.user_properties)
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    board, soc = properties.get("board", ""), properties.get("soc", "")
    return Skip(reason, board, soc, properties.get("waiver", ""))
