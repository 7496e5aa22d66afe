"""Which operators of the shipped models may run on the CPU, as data (ACC-06).

As compiled by RKNN-Toolkit2 2.2.0 to 2.5.0, which agree. The Reshape is the last operator of a classifier, to
(1, 10), a copy of ten bytes; RK3562, RK3576 and the RV SoCs do without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_CLASSIFIERS = (
    "digits_cnn",
    "digits_aligned",
    "digits_aligned_grid",
    "digits_aligned_input",
    "digits_aligned_output",
    "digits_unaligned",
)
_FINAL_RESHAPE = MappingProxyType(dict.fromkeys(("rk3588", "rk3566", "rk3568"), ("Reshape",)))

#: Operator types by model and toolkit platform; what is not named may have none.
CPU_OPERATORS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    dict.fromkeys(_CLASSIFIERS, _FINAL_RESHAPE)
)


def declared_for(model: str, platform: str) -> tuple[str, ...]:
    """The operator types that may run on the CPU, as often as they may occur."""
    return CPU_OPERATORS.get(model, {}).get(platform, ())
