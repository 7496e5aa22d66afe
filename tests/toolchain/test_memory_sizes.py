"""MEM-01 against the log: what lies in the range agrees, what does not is named."""

from __future__ import annotations

import pytest
from build_logs import NAMES, stored

from pytest_rknpu.toolchain.memory_sizes import disagreements, internal_range, weight_range

CHAIN = stored("probe_chain-int8-rv1126b-2.5.0").log.plan
WIDE = stored("probe_wide-int8-rv1106-2.5.0").log.plan


@pytest.mark.parametrize("name", NAMES)
def test_the_logs_own_totals_agree(name: str) -> None:
    for plan in stored(name).log.plans:
        weight, internal = plan.weight_total, plan.internal_total
        assert disagreements(weight.bytes + weight.rounding, internal.bytes, plan) == []
        assert weight_range(plan)[0] <= weight_range(plan)[1]
        assert internal_range(plan)[0] <= internal_range(plan)[1]


def test_ranges_of_a_known_plan() -> None:
    """Weights end at 0x40c0; the largest tensor that is neither input nor output is wide.relu."""
    assert weight_range(CHAIN) == (0x40C0, 20928 + 1 + 4096)
    assert internal_range(CHAIN) == (0x2000, 12288 + 1 + 4096)


def test_weights_first_in_a_shared_arena() -> None:
    assert internal_range(WIDE)[0] == 0xC000
    assert weight_range(WIDE)[0] == WIDE.weight_total.bytes


@pytest.mark.parametrize(
    ("weight", "internal", "words"),
    [
        (
            0x40BF,
            12288,
            "total_weight_size is 16575 bytes for the runtime, the build log says 16576 to 25025",
        ),
        (30000, 12288, "total_weight_size is 30000"),
        (20928, 0x1FFF, "total_internal_size is 8191"),
        (20928, 20000, "total_internal_size is 20000"),
    ],
)
def test_sizes_outside_are_named(weight: int, internal: int, words: str) -> None:
    (found,) = disagreements(weight, internal, CHAIN)
    assert words in found
