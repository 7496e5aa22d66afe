"""LAT-09's comparison: on real logs of two toolkit versions, and at its limits."""

from __future__ import annotations

import pytest
from build_logs import NAMES, stored

from pytest_rknpu.toolchain.cycles import add_up, cycles_by_layer, grown
from pytest_rknpu.toolchain.log_rows import Cycles

PAIRS = [name for name in NAMES if name.endswith("2.3.2") and f"{name[:-5]}2.5.0" in NAMES]


@pytest.mark.parametrize("name", PAIRS)
def test_two_toolkit_versions(name: str) -> None:
    """2.5.0 replaces a Concat, which counts as free, by convolutions: what it predicts of them grows."""
    old, new = stored(name).log.plans[0], stored(f"{name[:-5]}2.5.0").log.plans[0]
    words = grown(cycles_by_layer(old), cycles_by_layer(new), 0.01)
    changed = name.startswith(("detector", "dense", "attention"))
    assert bool(words) == changed, words
    assert not grown(cycles_by_layer(old), cycles_by_layer(old), 0.0)


def test_the_growth_of_a_detector_is_explained() -> None:
    old, new = (stored(f"detector-int8-rk3588-{version}").log.plan for version in ("2.3.2", "2.5.0"))
    words = grown(cycles_by_layer(old), cycles_by_layer(new), 0.01)
    assert len(words) == 3
    assert "total cycles grew from 55959 to 58741 (+5.0%)" in words[2]
    assert "Conv:/Resize_output_0_conv 0 -> 4216 (new)" in words[2]


def test_limits_signs_and_nothing() -> None:
    def layers(*totals: int) -> dict[str, Cycles]:
        return {f"layer {n}": Cycles(0, 0, total) for n, total in enumerate(totals)}

    assert not grown(layers(100), layers(101), 0.01)
    assert grown(layers(100), layers(102), 0.01) == [
        "total cycles grew from 100 to 102 (+2.0%): layer 0 100 -> 102"
    ]
    assert not grown(layers(-100), layers(-99), 0.01)
    assert grown(layers(-100), layers(-90), 0.01)
    assert "from nothing" in grown({}, layers(1), 0.01)[0]
    assert not grown(layers(5), {}, 0.0)
    many = grown(layers(*[1] * 9), layers(*[2] * 9), 0.0)[0]
    assert many.endswith("and 3 more")


def test_layers_of_one_name_are_added_up() -> None:
    plan = stored("recurrent-int8-rk3588-2.5.0").log.plan
    layers = cycles_by_layer(plan)
    assert add_up(layers.values()) == add_up(layer.cycles for layer in plan.layers)
    assert "a Conv without a name" in layers
