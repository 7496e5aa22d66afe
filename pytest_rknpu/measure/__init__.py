"""Pure functions that turn numbers into evidence: accuracy, bounds, quantiles against budgets. No I/O."""

from __future__ import annotations

from pytest_rknpu.measure.accuracy import Accuracy, compare_outputs, compare_samples, worst
from pytest_rknpu.measure.classification import Top1, count_top1, right_answers
from pytest_rknpu.measure.faults import fault_rate_bound, iterations_for_bound
from pytest_rknpu.measure.latency import (
    Judgement,
    Limit,
    LimitVerdict,
    QuantileFigures,
    judge,
    judge_limit,
    judge_ratio,
    quantile_figures,
    require_enough_for,
)
from pytest_rknpu.measure.localise import Location, MemoryLayout, locate
from pytest_rknpu.measure.oracle import judge_outputs, judge_top1, locate_violations
from pytest_rknpu.measure.paired import Paired, judge_loss, loss_bound, mcnemar, pair, samples_for_margin
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
from pytest_rknpu.measure.steps import StepDifference, count_steps, grid_step
from pytest_rknpu.measure.tolerance import Tolerance, violations

__all__ = [
    "Accuracy",
    "Bounds",
    "Decision",
    "Judgement",
    "Limit",
    "LimitVerdict",
    "Location",
    "MemoryLayout",
    "Paired",
    "QuantileFigures",
    "Rule",
    "StepDifference",
    "Tolerance",
    "Top1",
    "bounds",
    "chances",
    "compare_outputs",
    "compare_samples",
    "count_steps",
    "count_top1",
    "decide",
    "fault_rate_bound",
    "grid_step",
    "instabilities",
    "iterations_for_bound",
    "judge",
    "judge_limit",
    "judge_loss",
    "judge_outputs",
    "judge_ratio",
    "judge_top1",
    "locate",
    "locate_violations",
    "loss_bound",
    "mcnemar",
    "pair",
    "quantile_figures",
    "quantile_name",
    "require_enough_for",
    "right_answers",
    "sample_quantile",
    "samples_for_margin",
    "smallest_to_pass",
    "smallest_useful_count",
    "violations",
    "worst",
]
