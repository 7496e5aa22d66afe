"""Tests that do not always end alike on the same board with the same versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_rknpu.verdict import Outcome

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Flaky:
    """One test on one board with one set of versions, and how its attempts ended: in more than one way.

    ``changes``: how often an attempt ended otherwise than the one before; one change alone looks like
    something that no version tells of. ``differing_seeds``: with how many of the ``seeds`` attempts ended
    differently; 0 where each seed always ended alike, so that what the seed draws may be the reason.
    """

    outcomes: Mapping[Outcome, int]
    changes: int
    differing_seeds: int
    seeds: int

    @property
    def attempts(self) -> int:
        """All attempts; skips are none."""
        return sum(self.outcomes.values())

    @property
    def not_passed(self) -> int:
        """Those that ended in anything but a pass."""
        return self.attempts - self.outcomes.get(Outcome.PASS, 0)

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds at 95 % of the share that does not pass, if attempts are independent."""
        return share_bounds(self.not_passed, self.attempts)

    @property
    def verdict_changes(self) -> bool:
        """Whether both a pass and a failure were seen: else it only could not always be judged."""
        failed = self.outcomes.get(Outcome.FAIL, 0) + self.outcomes.get(Outcome.WAIVED, 0)
        return bool(failed and self.outcomes.get(Outcome.PASS, 0))


def share_bounds(count: int, attempts: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Bounds of the probability of what happened ``count`` times in ``attempts`` independent attempts.

    Clopper and Pearson's exact interval (Biometrika 26, 1934), from quantiles of the beta distribution.
    ValueError: no attempt, or a count that is none of them.
    """
    from scipy.special import betaincinv

    if attempts < 1 or not 0 <= count <= attempts:
        raise ValueError(f"{count} of {attempts} attempts is no count")
    tail = (1.0 - confidence) / 2.0
    lower = 0.0 if count == 0 else float(betaincinv(count, attempts - count + 1, tail))
    upper = 1.0 if count == attempts else float(betaincinv(count + 1, attempts - count, 1.0 - tail))
    return lower, upper
