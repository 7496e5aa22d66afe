"""What became of each waiver in a run: used, unused, expired, or overtaken by a board that passes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Protocol

from pytest_rknpu.verdict import Outcome, WaivedBy
from pytest_rknpu.waivers.table import Waiver

_FAILURES_OF_ONE_KIND = 1


class Judged(Protocol):
    """The part of a result that counts here."""

    @property
    def requirement(self) -> tuple[str, ...]: ...
    @property
    def nodeid(self) -> str: ...
    @property
    def board(self) -> str | None: ...
    @property
    def soc(self) -> str | None: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def waived_by(self) -> WaivedBy | None: ...


class State(str, Enum):
    """What a waiver is worth after a run."""

    USED = "used"
    UNUSED = "unused"
    EXPIRED = "expired"
    UNEXPECTED_PASS = "unexpected pass"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Standing:
    """One waiver after a run.

    ``number`` counts from 1, in the file's order. ``waived`` are the node ids of tests that failed as
    described; ``passing`` the boards on which tests within the scope passed and none failed; ``kinds`` how
    many different failures it covered, figures in them aside: more than one means that its pattern is broad.
    """

    number: int
    waiver: Waiver
    state: State
    waived: tuple[str, ...]
    passing: tuple[str, ...]
    kinds: int

    @property
    def broad(self) -> bool:
        """Whether it covered failures of more than one kind."""
        return self.kinds > _FAILURES_OF_ONE_KIND

    @property
    def title(self) -> str:
        """What lists call it."""
        return f"waiver {self.number} ({self.waiver.requirement}, {self.waiver.scope})"


def standings(waivers: Sequence[Waiver], results: Sequence[Judged], today: date) -> list[Standing]:
    """What became of ``waivers`` in a run with ``results``."""
    return [_standing(number, waiver, results, today) for number, waiver in enumerate(waivers, start=1)]


def _standing(number: int, waiver: Waiver, results: Sequence[Judged], today: date) -> Standing:
    own = [
        result
        for result in results
        if result.board is not None
        and waiver.covers(result.requirement, result.nodeid, result.board, result.soc or "", result.versions)
    ]
    waived = [result for result in own if result.waived_by is not None and result.waived_by.number == number]
    passing = _passing_boards(own)
    state = State.UNUSED
    if waiver.expired(today):
        state = State.EXPIRED
    elif passing:
        state = State.UNEXPECTED_PASS
    elif waived:
        state = State.USED
    kinds = {_kind(result.waived_by.message) for result in waived if result.waived_by is not None}
    return Standing(number, waiver, state, tuple(result.nodeid for result in waived), passing, len(kinds))


def _passing_boards(own: Iterable[Judged]) -> tuple[str, ...]:
    """Boards that showed the requirement in full: something passed, and nothing else came of it but skips."""
    outcomes: dict[str, set[Outcome]] = {}
    for result in own:
        outcomes.setdefault(str(result.board), set()).add(result.outcome)
    return tuple(
        board
        for board, seen in outcomes.items()
        if Outcome.PASS in seen and seen <= {Outcome.PASS, Outcome.SKIP}
    )


def _kind(message: str) -> str:
    """The message with its figures left out, so that the same failure at two places counts once."""
    return re.sub(r"(0x)?[0-9a-f]*\d[0-9a-f]*", "#", message.partition("\n")[0])
