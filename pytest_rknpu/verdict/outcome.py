"""The seven outcomes, and how the exception of a test becomes one of them.

The rule is a table, tried from top to bottom; an exception that no line knows is a harness fault, never
a verdict about a board:

====================================  ============  ==========================================================
exception                             outcome       why
====================================  ============  ==========================================================
none                                  pass
pytest.skip with a reason             skip          the reason is the proof that the item does not apply
pytest.skip without one               harness       a skip that proves nothing
BoardError                            infra         board, link or power failed
Inconclusive                          inconclusive  the evidence does not suffice
Waived                                waived        not met, in a way that is known and has a recorded reason
pytest-timeout's failure              infra         something hung: nothing is known of the requirement
AssertionError, ConformanceFailure    fail
pytest.fail, pytest.raises            fail          the test says so itself
anything else                         harness
====================================  ============  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import pytest

from pytest_rknpu.errors import BoardError, ConformanceFailure, Inconclusive, RknpuError, Waived


class Outcome(str, Enum):
    """What is known after a test. Only ``pass`` is green; ``skip`` and ``waived`` are neither."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    WAIVED = "waived"
    INCONCLUSIVE = "inconclusive"
    INFRA = "infra"
    HARNESS = "harness"

    def __str__(self) -> str:
        return self.value

    @property
    def red(self) -> bool:
        """Whether a run with this outcome in it must not exit with 0."""
        return self in _RED


_RED = frozenset({Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.INFRA, Outcome.HARNESS})

# What decides a cell of the matrix that several tests share: a proved failure first, then what kept us from
# knowing, then what was left out.
_BY_WEIGHT = (
    Outcome.FAIL,
    Outcome.HARNESS,
    Outcome.INFRA,
    Outcome.INCONCLUSIVE,
    Outcome.WAIVED,
    Outcome.PASS,
    Outcome.SKIP,
)

# What pytest itself puts where a skip mark gives no reason.
_NO_REASON = frozenset({"", "unconditional skip"})

_EMPTY_SKIP = "skipped without a reason; the reason is the proof that the item does not apply, so give one"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The outcome that decides for several tests together. Raises ValueError where there is none."""
    return min(outcomes, key=_BY_WEIGHT.index)


def outcome_of(exception: BaseException | None) -> Outcome:
    """The outcome of a test phase that ended with ``exception`` (None: it returned)."""
    if exception is None:
        return Outcome.PASS
    if isinstance(exception, pytest.skip.Exception):
        return Outcome.HARNESS if _reason(exception) in _NO_REASON else Outcome.SKIP
    if isinstance(exception, pytest.fail.Exception):
        return Outcome.INFRA if _is_timeout(exception) else Outcome.FAIL
    if isinstance(exception, BoardError):
        return Outcome.INFRA
    if isinstance(exception, Inconclusive):
        return Outcome.INCONCLUSIVE
    if isinstance(exception, Waived):
        return Outcome.WAIVED
    if isinstance(exception, (AssertionError, ConformanceFailure)):
        return Outcome.FAIL
    return Outcome.HARNESS


def message_of(exception: BaseException | None) -> str:
    """What the exception says, for people; foreign errors are introduced by their class."""
    if exception is None:
        return ""
    if isinstance(exception, pytest.skip.Exception):
        reason = _reason(exception)
        return _EMPTY_SKIP if reason in _NO_REASON else reason
    text = str(exception).strip()
    if isinstance(exception, (RknpuError, AssertionError, pytest.fail.Exception)):
        return text or type(exception).__name__
    return f"{type(exception).__name__}: {text}" if text else type(exception).__name__


def _reason(exception: BaseException) -> str:
    return str(getattr(exception, "msg", None) or "").strip()


def _is_timeout(exception: BaseException) -> bool:
    """Whether pytest-timeout raised this: it has no class of its own, only its words."""
    text = str(exception)
    return text.startswith("Timeout") and "pytest-timeout" in text
