"""MEM-01: the sizes that a runtime reports beside those of the build log of the same model.

No two numbers have to be equal. The runtime's internal size leaves out the inputs and outputs that zero
copy binds (C API reference), the log's includes them; and both round up. So each has a range.
"""

from __future__ import annotations

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.fused_graph import INPUT, OUTPUT

#: Allocations are rounded up to pages.
PAGE = 4096


def weight_range(plan: Plan) -> tuple[int, int]:
    """Bytes that the weights need at least and at most: to the end of the last one; the log's total."""
    starts = [weight.placement.start for weight in plan.weights]
    ends = [weight.placement.end for weight in plan.weights]
    total = plan.weight_total
    return max(ends, default=0) - min(starts, default=0), total.bytes + total.rounding + PAGE


def internal_range(plan: Plan) -> tuple[int, int]:
    """Bytes of internal memory at least and at most: the largest tensor inside; the log's total."""
    inputs = {layer.name.partition(":")[2] for layer in plan.layers if layer.op_type == INPUT}
    outputs = {read.tensor for read in plan.reads if read.user == OUTPUT}
    inside = [r.placement.size for r in plan.reads if r.tensor not in inputs | outputs]
    total = plan.internal_total
    return max(inside, default=0), total.bytes + total.rounding + PAGE


def disagreements(weight_size: int, internal_size: int, plan: Plan) -> list[str]:
    """What RKNN_QUERY_MEM_SIZE reports (bytes) against the log, in words; empty: they agree."""
    return [
        f"{name} is {size} bytes for the runtime, the build log says {lowest} to {highest}"
        for name, size, (lowest, highest) in (
            ("total_weight_size", weight_size, weight_range(plan)),
            ("total_internal_size", internal_size, internal_range(plan)),
        )
        if not lowest <= size <= highest
    ]
