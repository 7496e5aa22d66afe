"""Pure functions that turn numbers into evidence: accuracy, bounds, quantiles against budgets. No I/O."""

from __future__ import annotations

from pytest_rknpu.measure.accuracy import Accuracy, compare_outputs, compare_samples, worst
from pytest_rknpu.measure.classification import Top1, count_top1
from pytest_rknpu.measure.faults import fault_rate_bound, iterations_for_bound
from pytest_rknpu.measure.latency import (
    Judgement,
    Limit,
    LimitVerdict,
    QuantileFigures,
    judge,
    judge_ratio,
    quantile_figures,
    require_enough_for,
)
from pytest_rknpu.measure.oracle import judge_outputs, judge_top1
from pytest_rknpu.measure.quantiles import (
    Bounds,
    Decision,
    Rule,
    bounds,
    chances,
    decide,
    quantile_name,
    sample_quantile,
    smallest_to_pass,
    smallest_useful_count,
)
from pytest_rknpu.measure.stability import instabilities
from pytest_rknpu.measure.tolerance import Tolerance, violations

__all__ = [
    "Accuracy",
    "Bounds",
    "Decision",
    "Judgement",
    "Limit",
    "LimitVerdict",
    "QuantileFigures",
    "Rule",
    "Tolerance",
    "Top1",
    "bounds",
    "chances",
    "compare_outputs",
    "compare_samples",
    "count_top1",
    "decide",
    "fault_rate_bound",
    "instabilities",
    "iterations_for_bound",
    "judge",
    "judge_outputs",
    "judge_ratio",
    "judge_top1",
    "quantile_figures",
    "quantile_name",
    "require_enough_for",
    "sample_quantile",
    "smallest_to_pass",
    "smallest_useful_count",
    "violations",
    "worst",
]
