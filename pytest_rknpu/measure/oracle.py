"""The judgement of ACC-01 and ACC-02: each sample of each output against its reference, within declared
limits.

Judges return what is wrong, in words, so that one test can measure everything before it fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isinf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive
from pytest_rknpu.measure.accuracy import compare_samples, worst
from pytest_rknpu.measure.classification import count_top1
from pytest_rknpu.measure.localise import MemoryLayout, locate
from pytest_rknpu.measure.tolerance import Tolerance, violations

#: Called with name, value and unit of each figure, before anything is judged by it.
Report = Callable[[str, float, str], object]


def judge_outputs(
    reference: Sequence[NDArray[Any]],
    actual: Sequence[NDArray[Any]],
    tolerances: Sequence[Tolerance],
    report: Report,
) -> list[str]:
    """Compares outputs (N, ...), one array and one tolerance each; the worst sample decides. Returns broken
    limits.

    ConformanceFailure: outputs differ in number or shape, or are not finite. HarnessError: nothing was
    compared. Inconclusive: degenerate data.
    """
    if not reference or len(tolerances) != len(reference):
        raise HarnessError(f"nothing was compared: {len(reference)} references, {len(tolerances)} tolerances")
    if len(actual) != len(reference):
        raise ConformanceFailure(f"the board gave {len(actual)} outputs, the reference has {len(reference)}")
    broken: list[str] = []
    for number, (expected, found, tolerance) in enumerate(zip(reference, actual, tolerances, strict=True)):
        _require_a_limit(number, expected, tolerance)
        accuracy = worst(compare_samples(expected, found))
        for name, value, unit in accuracy.measurements():
            report(f"output {number} {name}", value, unit)
        broken += [f"output {number}: {problem}" for problem in violations(accuracy, tolerance)]
    return broken


def _require_a_limit(number: int, reference: NDArray[Any], tolerance: Tolerance) -> None:
    """Over one number for each sample only the largest error judges each of them."""
    judged = tolerance.cosine_at_least > -1 or tolerance.sqnr_db_at_least > -inf
    single = bool(reference.ndim) and reference.shape[0] == reference.size
    if single and judged and isinf(tolerance.max_error_at_most):
        raise Inconclusive(
            f"mistrusted: output {number} has one element for each sample, whose cosine and SQNR say nothing "
            "of a single one; declare max_error"
        )


def locate_violations(
    reference: Sequence[NDArray[Any]],
    actual: Sequence[NDArray[Any]],
    tolerances: Sequence[Tolerance],
    layouts: Sequence[MemoryLayout],
) -> list[str]:
    """Says for each output that breaks its limits where it is off (ACC-07); one layout for each output.

    Off are the elements beyond the largest error that is declared; where none is (the limits broken are on
    the whole), those with more than half of the largest error. Raises as ``judge_outputs``.
    """
    texts = []
    for number, (expected, found) in enumerate(zip(reference, actual, strict=True)):
        accuracy, tolerance = worst(compare_samples(expected, found)), tolerances[number]
        if violations(accuracy, tolerance):
            layout = layouts[number]
            location = locate(expected, found, tolerance.max_error_at_most, layout)
            location = location or locate(expected, found, accuracy.max_error / 2, layout)
            texts.append(f"output {number}: {location}")
    return texts


def judge_top1(
    reference: NDArray[Any], actual: NDArray[Any], labels: NDArray[Any], drop_at_most: float, report: Report
) -> list[str]:
    """Compares top-1 of scores (N, classes) on labels (N,) with that of the reference's scores.

    ``drop_at_most`` is a share of the samples. Raises as ``count_top1``. Inconclusive: an output that never
    changes would be within the drop too, as with labels that are not those of the samples.
    """
    expected, found = count_top1(reference, labels), count_top1(actual, labels)
    report("top-1", found.share, "")
    report("top-1 of the reference", expected.share, "")
    report("top-1 flips", float((reference.argmax(axis=1) != actual.argmax(axis=1)).sum()), "samples")
    report("top-1 ties", float(found.tied), "samples")
    report("labelled", float(found.count), "samples")
    commonest = int(np.bincount(labels).max())
    if expected.correct - drop_at_most * found.count <= commonest:
        raise Inconclusive(
            f"mistrusted: the reference itself is right on {expected.correct} of {found.count} labels, and "
            f"one class alone is {commonest} of them: an output that never changes would pass. See that the "
            "labels are those of the samples, and mean, std, layout and channel order the model's"
        )
    if expected.correct - found.correct <= drop_at_most * found.count:
        return []
    return [
        f"top-1 is {found.correct} of {found.count} ({found.tied} tied), the reference's {expected.correct}; "
        f"declared: at most {drop_at_most:.2%} fewer"
    ]
