"""A memory plan as one text that a result can carry: the arena over the layers, for the report's page."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.memory_plan import Tensor

MEASUREMENT = "memory map"
"""Under this name a result has the text."""
MOST_TENSORS = 200
_LONGEST_NAME = 60


def memory_map(plan: Plan, tensors: Iterable[Tensor]) -> str:
    """JSON with ``layers`` (number of the last one), ``internal`` and ``weights`` (sizes in bytes),
    ``tensors`` and ``left_out``.

    Each tensor is [name, offset, size, first layer, last layer, scratch]: offset and size in bytes, layers
    inclusive, scratch 1 or 0; in the order of their first layer. Of more than 200 the largest are in it, and
    ``left_out`` counts the others, so that no text is longer than some 25 KB.
    """
    by_size = sorted(tensors, key=lambda tensor: tensor.start - tensor.end)
    kept = sorted(by_size[:MOST_TENSORS], key=lambda tensor: (tensor.born, tensor.start))
    table = {
        "layers": max((layer.id for layer in plan.layers), default=0),
        "internal": plan.internal_total.bytes,
        "weights": plan.weight_total.bytes,
        "tensors": [
            [
                tensor.name[:_LONGEST_NAME],
                tensor.start,
                tensor.end - tensor.start,
                tensor.born,
                tensor.dies,
                int(tensor.scratch),
            ]
            for tensor in kept
        ],
        "left_out": len(by_size) - len(kept),
    }
    return json.dumps(table, separators=(",", ":"))
