"""Which changes of memory and accuracy are worth an alarm, and which way is worse."""

from __future__ import annotations

import math

import pytest

from pytest_rknpu.measure.figures import SIZE_LEAST, Figure, number_in, worse


@pytest.mark.parametrize(
    ("name", "unit", "before", "after", "expected"),
    [
        ("digits_cnn total_weight_size", "B", 10**6, 1.021e6, "memory grew"),
        ("digits_cnn total_weight_size", "B", 10**6, 1.02e6, None),  # tolerated
        ("weight memory", "B", 10**6, 0.5e6, None),  # smaller
        ("weight memory", "B", 1000, 1000 + SIZE_LEAST, None),  # a page
        ("weight memory", "B", 1000, 1001 + SIZE_LEAST, "memory grew"),
        ("total_sram_size", "B", 0, 2**18, "memory grew"),
        ("growth of dma_bytes", "B", 0, 10**6, None),  # of a test for leaks, which judges it
        ("rounding of eval_memory", "B", 1, 10**6, None),
        ("weight size by the log, at most", "B", 1, 10**6, None),
        ("top-1", "", 0.98, 0.9699, "accuracy dropped"),
        ("top-1", "", 0.9, 0.89, None),
        ("top-1", "", 0.9, 0.95, None),
        ("top-1 pruned", "", 0.9, 0.8, "accuracy dropped"),
        ("top-1 of the reference", "", 0.9, 0.8, None),  # no board computed it
        ("top-1 flips", "samples", 9, 1, None),
        ("output 0 cosine", "", 0.9999, 0.9985, "accuracy dropped"),
        ("output 0 cosine", "", 0.9999, 0.9995, None),
        ("cosine of Conv conv1", "", 0.9999, 0.9, "accuracy dropped"),
        ("output 1 sqnr", "dB", 40.0, 38.5, "accuracy dropped"),
        ("output 1 sqnr", "dB", 40.0, 39.2, None),
        ("output 1 sqnr", "dB", math.inf, 61.0, None),
        ("output 1 sqnr", "dB", math.inf, 40.0, "accuracy dropped"),
        ("output 1 max_error", "output unit", 0.1, 9.0, None),  # of one element: for the reader
        ("iterations", "", 300, 3, None),
    ],
)
def test_what_is_worse(name: str, unit: str, before: float, after: float, expected: str | None) -> None:
    assert worse(Figure(name, before, unit), Figure(name, after, unit)) == expected
    assert worse(Figure(name, before, unit), Figure(name, before, unit)) is None


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3.0), (0.5, 0.5), ("inf", math.inf), ("-inf", -math.inf)]
    + [(value, None) for value in (True, "nan", "12", None, [1], math.nan, 10**400)],
)
def test_what_is_a_figure(value: object, number: float | None) -> None:
    assert number_in(value) == number
