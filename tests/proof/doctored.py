"""Faults that are made by hand: bad input for the suites' own test functions, run in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_rknpu.inventory.schema import Board
from pytest_rknpu.inventory.socs import find_soc
from pytest_rknpu.verdict import ItemRecord, Outcome, outcome_of

Kills = dict[str, dict[str, str]]
"""Requirement -> test function that ends red -> its outcome: fail, or inconclusive."""
Trials = Callable[[], Iterator[tuple[Callable[..., object], Sequence[object]]]]


@dataclass(frozen=True)
class DoctoredFault:
    """``trials`` are test functions of the suites with the arguments that break them."""

    name: str
    description: str
    requirements: tuple[str, ...]
    trials: Trials

    def kills(self) -> Kills:
        """What turns red, by requirement."""
        found: Kills = {}
        for test, arguments in self.trials():
            outcome = outcome_with(test, arguments)
            if outcome.red:
                for id in _requirements(test):
                    found.setdefault(id, {})[test.__name__] = str(outcome)
        return found


def outcome_with(test: Callable[..., object], arguments: Sequence[object]) -> Outcome:
    """How a test function of the suites ends."""
    try:
        test(*arguments)
    except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
        return outcome_of(error)
    return Outcome.PASS


def _requirements(test: Callable[..., object]) -> tuple[str, ...]:
    marks = getattr(test, "pytestmark", [])
    return tuple(id for mark in marks if mark.name == "requirement" for id in mark.args)


@contextmanager
def replaced(module: Any, name: str, value: object) -> Iterator[None]:
    """A function of a suite's module is another for a while."""
    sound = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, sound)


def new_record() -> ItemRecord:
    """Of a test that nobody reports."""
    return ItemRecord("proof", (), 1)


def described_board(soc: str = "rk3588", runtime: str = "simulator") -> Any:
    """What the tests read of a live board that they do not use."""
    described = Board(name=f"sim-{soc}", soc=soc, runtime=runtime)
    return SimpleNamespace(board=described, session=SimpleNamespace(soc=find_soc(soc)))
