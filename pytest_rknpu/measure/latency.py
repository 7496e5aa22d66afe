"""Latency against its budget: several quantiles, and whether the samples may be judged at all.

One line of budgets is one verdict over several quantiles. It passes where each quantile passes: for a false
pass the quantile whose budget is broken has to pass, so that its own alpha holds for all together. It fails
where any quantile fails: that has as many chances as there are quantiles, so that each gets alpha / their
number. Either needs the processes to agree (``measure.processes``): what the binomial decides is inconclusive
where a t test over the processes does not say so at the same alpha. Whatever makes samples unfit to judge
(``measure.stability``, disturbed conditions) comes before all that: neither a pass nor a fail is worth
anything then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.measure.processes import Votes, alpha_to_pass, votes
from pytest_rknpu.measure.quantiles import (
    Bounds,
    Decision,
    Rule,
    bounds,
    decide,
    fail_tail,
    pass_tail,
    quantile_name,
    require_enough,
    sample_quantile,
)
from pytest_rknpu.measure.stability import instabilities

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Limit:
    """A budget for one quantile, in the unit of the samples."""

    quantile: float
    at_most: float


@dataclass(frozen=True)
class QuantileFigures:
    """A quantile of the samples with its bounds, each at confidence 1 - alpha."""

    quantile: float
    value: float
    bounds: Bounds


@dataclass(frozen=True)
class LimitVerdict:
    """What was decided on one limit, and from what. Tails as in ``measure.quantiles``.

    ``doubt`` is the tail of the processes' votes where it took the binomial's decision back, else None.
    """

    limit: Limit
    votes: Votes
    count: int
    above: int
    pass_tail: float
    fail_tail: float
    doubt: float | None
    decision: Decision

    def sentence(self, unit: str) -> str:
        """The verdict in words."""
        name = quantile_name(self.limit.quantile)
        allowed = self.count * (1 - self.limit.quantile)
        return (
            f"{name} <= {f'{self.limit.at_most:g} {unit}'.strip()}: {self.decision}, {self.above} of "
            f"{self.count} are above it, {allowed:g} may be (tails: pass {self.pass_tail:.2g}, fail "
            f"{self.fail_tail:.2g}){self._doubted()}"
        )

    def _doubted(self) -> str:
        if self.doubt is None:
            return ""
        return (
            f"; but the processes differ too much to say so: {', '.join(map(str, self.votes.above))} runs of "
            f"each (tail {self.doubt:.2g})"
        )


@dataclass(frozen=True)
class Judgement:
    """The verdict on all limits. ``reasons`` say why samples could not be judged, where they could not.

    ``unit`` is that of samples and limits, "" for a ratio.
    """

    decision: Decision
    limits: tuple[LimitVerdict, ...]
    reasons: tuple[str, ...]
    unit: str

    def lines(self) -> list[str]:
        """All of it in words."""
        judged = [verdict.sentence(self.unit) for verdict in self.limits]
        return judged + [f"cannot be judged: {reason}" for reason in self.reasons]


def quantile_figures(processes: Sequence[Doubles], quantile: float, alpha: float) -> QuantileFigures:
    """A quantile of all samples together and its bounds."""
    ordered = np.sort(np.concatenate(processes))
    return QuantileFigures(quantile, sample_quantile(ordered, quantile), bounds(ordered, quantile, alpha))


def require_enough_for(count: int, quantiles: Sequence[float], rule: Rule) -> None:
    """Refuse a number of samples with which these quantiles cannot be judged: ConfigurationError."""
    for quantile in quantiles:
        require_enough(count, quantile, rule.per_look, rule.per_look / len(quantiles))


def judge(
    processes: Sequence[Doubles],
    limits: Sequence[Limit],
    rule: Rule,
    disturbances: Sequence[str] = (),
    *,
    comparisons: int = 1,
) -> Judgement:
    """Judge samples in ms (one array per process, in the order of the runs) by all limits.

    ``comparisons`` is how many such verdicts make up one result. ``disturbances`` are reasons from elsewhere
    not to judge them. Raises ConfigurationError for too few samples, with the number needed, and for no
    limit.
    """
    if not limits:
        raise ConfigurationError("there is no budget to judge by")
    count = sum(samples.size for samples in processes)
    quantiles = [limit.quantile for limit in limits]
    chances = len(limits) * comparisons
    for quantile in quantiles:
        require_enough(count, quantile, rule.per_look, rule.per_look / chances)
    verdicts = tuple(
        judge_limit(processes, limit, rule.per_look, rule.per_look / chances) for limit in limits
    )
    reasons = (*disturbances, *instabilities(processes, quantiles))
    return Judgement(_overall(verdicts, bool(reasons)), verdicts, reasons, "ms")


def judge_limit(
    processes: Sequence[Doubles], limit: Limit, pass_alpha: float, fail_alpha: float
) -> LimitVerdict:
    """The verdict on one limit, as if the samples were fit to judge.

    Raises ConfigurationError for too few.
    """
    found = votes(processes, limit.at_most)
    count, above, quantile = sum(found.runs), sum(found.above), limit.quantile
    decision = decide(count, above, quantile, pass_alpha, fail_alpha)
    low, high = found.tails(1.0 - quantile)
    doubt = None
    if decision == "pass" and low > alpha_to_pass(quantile, pass_alpha):
        decision, doubt = "inconclusive", low
    elif decision == "fail" and high > fail_alpha:
        decision, doubt = "inconclusive", high
    return LimitVerdict(
        limit=limit,
        votes=found,
        count=count,
        above=above,
        pass_tail=pass_tail(count, above, quantile),
        fail_tail=fail_tail(count, above, quantile),
        doubt=doubt,
        decision=decision,
    )


def _overall(verdicts: Sequence[LimitVerdict], unfit: bool) -> Decision:
    decisions = {verdict.decision for verdict in verdicts}
    if unfit:
        return "inconclusive"
    if "fail" in decisions:
        return "fail"
    return "pass" if decisions == {"pass"} else "inconclusive"


def judge_ratio(
    ratios: Sequence[Doubles],
    at_most: float,
    rule: Rule,
    comparisons: int = 1,
    disturbances: Sequence[str] = (),
) -> Judgement:
    """Judge interleaved pairs: is the median of the ratio of A's time to B's within ``at_most``?

    One ratio per block in which A and B ran once each, in random order. It is the sign test, which is the
    decision on p50. ``comparisons`` is how many such verdicts make up one result: each fails at alpha / their
    number, as above.
    """
    verdict = judge_limit(ratios, Limit(0.5, at_most), rule.per_look, rule.per_look / comparisons)
    reasons = (*disturbances, *instabilities(ratios, [0.5], outlier_share=1.0))
    return Judgement(_overall([verdict], bool(reasons)), (verdict,), reasons, "")
