"""Pure functions that turn numbers into evidence: accuracy metrics, tolerances, bounds. No I/O."""

from __future__ import annotations

from pytest_rknpu.measure.accuracy import Accuracy, compare_outputs, compare_samples, worst
from pytest_rknpu.measure.classification import Top1, count_top1
from pytest_rknpu.measure.faults import fault_rate_bound, iterations_for_bound
from pytest_rknpu.measure.oracle import judge_outputs, judge_top1
from pytest_rknpu.measure.tolerance import Tolerance, violations

__all__ = [
    "Accuracy",
    "Tolerance",
    "Top1",
    "compare_outputs",
    "compare_samples",
    "count_top1",
    "fault_rate_bound",
    "iterations_for_bound",
    "judge_outputs",
    "judge_top1",
    "violations",
    "worst",
]
