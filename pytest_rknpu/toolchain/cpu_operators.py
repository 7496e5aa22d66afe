"""ACC-06: operators that the compiler left to the CPU, which is slower and rounds in another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import INPUT, OUTPUT
from pytest_rknpu.toolchain.log_rows import Layer

NPU = "NPU"


def cpu_operators(plan: Plan) -> tuple[Layer, ...]:
    """The layers that do not run on the NPU; taking inputs in and handing outputs out are no operators."""
    return tuple(
        layer for layer in plan.layers if layer.target != NPU and layer.op_type not in (INPUT, OUTPUT)
    )


def undeclared(found: Iterable[Layer], declared: Iterable[str]) -> list[str]:
    """Each operator beyond ``declared`` (types, as often as they may occur), in words with its layer."""
    allowance, beyond = Counter(declared), []
    for layer in found:
        if allowance[layer.op_type] > 0:
            allowance[layer.op_type] -= 1
        else:
            beyond.append(
                f"{layer.op_type} (layer {layer.id}, {layer.name or 'without a name'}) on {layer.target}"
            )
    return beyond
