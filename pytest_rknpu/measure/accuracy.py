"""How far an output is from its reference (ACC-01, ACC-02).

A metric over degenerate data says nothing: the cosine of two one-element outputs is always 1, and a constant
output agrees with a constant reference whatever the board did. Such data raise Inconclusive ("mistrusted"),
never a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConformanceFailure, HarnessError, Inconclusive

#: More than this share of elements at the very highest or lowest value is taken for clipping.
SATURATED_SHARE = 0.5

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """One comparison over ``count`` elements. The error is actual minus reference, in the unit of the output.

    ``cosine`` lies in [-1, 1]; ``sqnr_db`` is 10 log10(sum reference^2 / sum error^2), infinite where all
    elements are equal; ``max_error`` is the largest absolute error; ``bias`` is the mean error.
    """

    count: int
    cosine: float
    sqnr_db: float
    max_error: float
    bias: float

    def measurements(self) -> Iterator[tuple[str, float, str]]:
        """(name, value, unit), for a record."""
        yield "compared", float(self.count), "elements"
        yield "cosine", self.cosine, ""
        yield "sqnr", self.sqnr_db, "dB"
        yield "max_error", self.max_error, "output unit"
        yield "bias", self.bias, "output unit"


def compare_outputs(reference: NDArray[Any], actual: NDArray[Any]) -> Accuracy:
    """Compares two arrays of one shape and any real type, as one vector.

    HarnessError: nothing to compare. ConformanceFailure: another shape than the reference's, or numbers that
    are not finite. Inconclusive: either side is degenerate, or the reference is not finite.
    """
    if reference.shape != actual.shape:
        raise ConformanceFailure(f"output has shape {actual.shape}, its reference {reference.shape}")
    if reference.size == 0:
        raise HarnessError(f"nothing was compared: both outputs are empty (shape {reference.shape})")
    expected, found = _vector(reference), _vector(actual)
    if not np.isfinite(expected).all():
        raise Inconclusive(
            f"mistrusted: the reference has {_not_finite(expected)} elements that are not finite"
        )
    if not np.isfinite(found).all():
        raise ConformanceFailure(
            f"output has {_not_finite(found)} of {found.size} elements that are not finite"
        )
    for name, values in (("reference", expected), ("output", found)):
        reason = degenerate(values)
        if reason is not None:
            raise Inconclusive(f"mistrusted: the {name} {reason}")
    return _metrics(expected, found)


def compare_samples(reference: NDArray[Any], actual: NDArray[Any]) -> list[Accuracy]:
    """Compares arrays (N, ...) sample by sample: a model can be right on two inputs and broken on the third.

    One number for each sample (a class, an angle) has no cosine of its own: such outputs are compared as one
    vector over the samples. Raises as ``compare_outputs``, with the number of the sample.
    """
    if reference.shape != actual.shape:
        raise ConformanceFailure(f"output has shape {actual.shape}, its reference {reference.shape}")
    if reference.ndim < 1 or reference.shape[0] == 0:
        raise HarnessError("nothing was compared: there is no sample")
    if reference.shape[0] == reference.size > 1:
        return [compare_outputs(reference, actual)]
    results = []
    for number, (expected, found) in enumerate(zip(reference, actual, strict=True)):
        try:
            results.append(compare_outputs(expected, found))
        except (ConformanceFailure, HarnessError, Inconclusive) as error:
            raise type(error)(f"sample {number}: {error}") from None
    return results


def worst(results: Sequence[Accuracy]) -> Accuracy:
    """The worst of each metric over several comparisons; each figure may come from another of them."""
    if not results:
        raise HarnessError("nothing was compared: there is no result")
    return Accuracy(
        sum(result.count for result in results),
        min(result.cosine for result in results),
        min(result.sqnr_db for result in results),
        max(result.max_error for result in results),
        max((result.bias for result in results), key=abs),
    )


def degenerate(values: NDArray[Any]) -> str | None:
    """Why finite values (any shape, at least one element) cannot carry a comparison, or None."""
    if values.size == 1:
        return "has one element, whose cosine is always 1 or -1"
    lowest, highest = values.min(), values.max()
    if lowest == highest:
        return "is all zero" if lowest == 0 else f"is constant ({float(lowest):g})"
    for extreme, name in ((highest, "highest"), (lowest, "lowest")):
        share = float((values == extreme).mean())
        # Zero at the low end is what Relu leaves, and no clipping.
        if share > SATURATED_SHARE and extreme != 0:
            return f"is saturated: {share:.0%} of its elements lie at the {name} value {float(extreme):g}"
    return None


def _metrics(expected: Doubles, found: Doubles) -> Accuracy:
    # Scaled to 1 first, so that squares neither overflow nor vanish; every metric but the error is free of
    # scale.
    unit = max(float(np.abs(expected).max()), float(np.abs(found).max()))
    scaled_expected, scaled_found = expected / unit, found / unit
    error = scaled_found - scaled_expected
    signal, noise = float(scaled_expected @ scaled_expected), float(error @ error)
    norms = math.sqrt(signal) * math.sqrt(float(scaled_found @ scaled_found))
    cosine = float(scaled_expected @ scaled_found) / norms if norms > 0 else 0.0
    return Accuracy(
        expected.size,
        min(1.0, max(-1.0, cosine)),
        _decibels(signal, noise),
        float(np.abs(error).max()) * unit,
        float(error.mean()) * unit,
    )


def _decibels(signal: float, noise: float) -> float:
    if noise == 0.0:
        return math.inf
    if signal == 0.0:
        return -math.inf
    return 10 * (math.log10(signal) - math.log10(noise))


def _vector(values: NDArray[Any]) -> Doubles:
    return np.asarray(values, dtype=np.float64).reshape(-1)


def _not_finite(values: Doubles) -> int:
    return int((~np.isfinite(values)).sum())
