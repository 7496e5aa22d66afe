"""Each limit alone can break, at its very edge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_rknpu.measure import Accuracy, Tolerance, violations
from pytest_rknpu.models.tolerances import AGAINST_QUANTISED, DECLARED, in_output_units

TOLERANCE = Tolerance(0.99, 30.0, 0.5, 0.1)
AT_THE_LIMIT = Accuracy(10, 0.99, 30.0, 0.5, -0.1)


def test_limits_are_inclusive() -> None:
    assert violations(AT_THE_LIMIT, TOLERANCE) == []


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("cosine", 0.9899, "cosine is 0.9899, declared >= 0.99"),
        ("sqnr_db", 29.9, "SQNR (dB) is 29.9, declared >= 30"),
        ("max_error", 0.51, "largest error is 0.51, declared <= 0.5"),
        ("bias", -0.11, "bias is 0.11, declared <= 0.1"),
        ("bias", 0.11, "bias is 0.11, declared <= 0.1"),
        ("cosine", float("nan"), "cosine is nan, declared >= 0.99"),
        ("max_error", float("nan"), "largest error is nan, declared <= 0.5"),
    ],
)
def test_each_limit_breaks_alone(field: str, value: float, words: str) -> None:
    assert violations(replace(AT_THE_LIMIT, **{field: value}), TOLERANCE) == [words]


def test_steps_become_output_units() -> None:
    scaled = in_output_units(AGAINST_QUANTISED, 0.25)
    assert 0.25 <= scaled.max_error_at_most < 0.26
    assert scaled.cosine_at_least == AGAINST_QUANTISED.cosine_at_least
    # One step passes, two do not.
    one = Accuracy(10, 1.0, 40.0, 0.25, 0.0)
    assert violations(one, scaled) == []
    assert violations(replace(one, max_error=0.5), scaled)


def test_each_model_of_the_catalogue_has_tolerances() -> None:
    from pytest_rknpu import models

    # The sparse siblings borrow their data; they are judged against the dense one (SPARSE-04, SPARSE-05).
    own_data = {name for name in models.names() if models.load(name).provenance.data_of is None}
    assert set(DECLARED) == own_data
