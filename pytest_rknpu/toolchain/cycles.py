"""LAT-09: the cycles that the compiler itself predicts, beside those of another toolkit version.

They are a model's, not a clock's: a compile-time regression shows in them without a board, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_rknpu.toolchain.build_log import Plan
from pytest_rknpu.toolchain.log_rows import Cycles

#: As many layers are named when a network has grown.
_NAMED = 6
_KINDS = ("ddr", "npu", "total")


def cycles_by_layer(plan: Plan) -> dict[str, Cycles]:
    """The predicted cycles of each layer by its full name, in the order of execution; those of none left out.

    Layers of one name, or without one, are added up.
    """
    layers: dict[str, Cycles] = {}
    for layer in plan.layers:
        if layer.cycles != Cycles(0, 0, 0):
            name = layer.name or f"a {layer.op_type} without a name"
            layers[name] = add_up([layers.get(name, Cycles(0, 0, 0)), layer.cycles])
    return layers


def add_up(cycles: Iterable[Cycles]) -> Cycles:
    """The sum of each kind."""
    each = list(cycles)
    return Cycles(sum(c.ddr for c in each), sum(c.npu for c in each), sum(c.total for c in each))


def grown(baseline: Mapping[str, Cycles], found: Mapping[str, Cycles], tolerated: float) -> list[str]:
    """Each kind of cycles of which a network needs over ``tolerated`` (a share) more than before, in words.

    Both are by layer, as from ``cycles_by_layer``; the layers that cost most beyond the baseline are named.
    """
    before, after = add_up(baseline.values()), add_up(found.values())
    words = []
    for kind in _KINDS:
        old, new = getattr(before, kind), getattr(after, kind)
        if new > old + tolerated * abs(old):
            share = f"{(new - old) / abs(old):+.1%}" if old else "from nothing"
            words.append(
                f"{kind} cycles grew from {old} to {new} ({share}): {_growth(baseline, found, kind)}"
            )
    return words


def _growth(baseline: Mapping[str, Cycles], found: Mapping[str, Cycles], kind: str) -> str:
    nothing = Cycles(0, 0, 0)
    pairs = {
        name: (getattr(baseline.get(name, nothing), kind), getattr(cycles, kind))
        for name, cycles in found.items()
    }
    dearest = sorted((n for n, (a, b) in pairs.items() if b > a), key=lambda n: pairs[n][0] - pairs[n][1])
    texts = [
        f"{name} {pairs[name][0]} -> {pairs[name][1]}" + ("" if name in baseline else " (new)")
        for name in dearest[:_NAMED]
    ]
    return ", ".join([*texts, *([f"and {len(dearest) - _NAMED} more"] if len(dearest) > _NAMED else [])])
