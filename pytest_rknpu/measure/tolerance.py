"""What a model's outputs may differ from a reference, as data, and the judgement of it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_rknpu.measure.accuracy import Accuracy


@dataclass(frozen=True)
class Tolerance:
    """Limits, each inclusive. ``max_error_at_most`` and ``bias_at_most`` are in the unit of the output."""

    cosine_at_least: float
    sqnr_db_at_least: float
    max_error_at_most: float
    bias_at_most: float


def violations(accuracy: Accuracy, tolerance: Tolerance) -> list[str]:
    """Each broken limit in words; an empty list: all hold. A figure that is no number breaks its limit."""
    limits = (
        ("cosine", accuracy.cosine, ">=", tolerance.cosine_at_least),
        ("SQNR (dB)", accuracy.sqnr_db, ">=", tolerance.sqnr_db_at_least),
        ("largest error", accuracy.max_error, "<=", tolerance.max_error_at_most),
        ("bias", abs(accuracy.bias), "<=", tolerance.bias_at_most),
    )
    return [
        f"{name} is {value:.6g}, declared {sign} {limit:g}"
        for name, value, sign, limit in limits
        if not (value >= limit if sign == ">=" else value <= limit)
    ]
