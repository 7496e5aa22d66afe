"""How far the outputs of each model may be from its references, as data.

Limits hold for the worst sample. They leave about half the figure again (in dB: three) beyond the worse of
two measurements: the QDQ model by ONNX Runtime, and RKNN-Toolkit2 2.5.0's simulator (rk3588 and rk3576, which
agree), each against the float model. No silicon went into them yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from pytest_rknpu.measure import Tolerance


@dataclass(frozen=True)
class Declared:
    """``against_float`` has one entry per output; ``top1_drop_at_most`` is a share, None if no classifier."""

    against_float: tuple[Tolerance, ...]
    top1_drop_at_most: float | None = None


#: cosine >=, SQNR in dB >=, largest error <=, bias <=; errors in the unit of the output.
DECLARED: Mapping[str, Declared] = MappingProxyType(
    {
        "digits_cnn": Declared((Tolerance(0.998, 24.0, 0.55, 0.07),), top1_drop_at_most=0.01),
        "probe_chain": Declared((Tolerance(0.9995, 31.0, 0.045, 0.003),)),
        "probe_pointwise": Declared((Tolerance(0.99999, 45.0, 1 / 64, 0.001),)),
        "probe_stride": Declared((Tolerance(0.9997, 33.0, 0.026, 0.003),)),
        "probe_wide": Declared((Tolerance(0.9995, 31.0, 0.06, 0.003),)),
    }
)

#: Against the quantised model the largest error and the bias are counted in steps of the output's grid.
AGAINST_QUANTISED = Tolerance(
    cosine_at_least=0.999, sqnr_db_at_least=30.0, max_error_at_most=1.0, bias_at_most=0.5
)


def in_output_units(tolerance: Tolerance, step: float) -> Tolerance:
    """A tolerance given in steps, for an output with that step; a thousandth of it is left to rounding."""
    scaled = step * 1.001
    return replace(
        tolerance,
        max_error_at_most=tolerance.max_error_at_most * scaled,
        bias_at_most=tolerance.bias_at_most * scaled,
    )
