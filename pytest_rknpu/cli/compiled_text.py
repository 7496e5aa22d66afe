"""What `rknpu compile` prints of its builds, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_rknpu.cli.compile import Failed, Made
from pytest_rknpu.inventory.socs import SOCS

if TYPE_CHECKING:
    from pytest_rknpu.toolchain import Plan
    from pytest_rknpu.toolchain.log_rows import Layer, MemoryTotal

FORMAT = 1
"""Of the JSON: counted up when a key changes its meaning or goes."""


def builds_json(name: str, results: Sequence[Made | Failed]) -> str:
    """Everything; its keys are those of docs/command-line.md."""
    document = {
        "format": FORMAT,
        "model": name,
        "builds": [_build(result) for result in results if isinstance(result, Made)],
        "failed": [vars(result) for result in results if isinstance(result, Failed)],
    }
    return json.dumps(document, indent=2)


def _build(made: Made) -> dict[str, Any]:
    compiled = made.build.compiled
    return {
        "soc": made.soc,
        "file": str(made.file),
        "bytes": made.file.stat().st_size,
        "sha256": compiled.sha256,
        "toolkit": compiled.toolkit_version,
        "cached": compiled.cached,
        "log": str(compiled.log),
        "plans": [_plan(plan) for plan in made.build.log.plans],
    }


def _plan(plan: Plan) -> dict[str, Any]:
    from pytest_rknpu.toolchain.cpu_operators import cpu_operators
    from pytest_rknpu.toolchain.cycles import add_up

    return {
        "weight": _memory(plan.weight_total),
        "internal": _memory(plan.internal_total),
        "predicted_cycles": vars(add_up(layer.cycles for layer in plan.layers)),
        "layers": len(plan.layers),
        "sparse": [
            {**_named(layer), "share": layer.sparse_ratio.share, "axis": layer.sparse_ratio.axis}
            for layer in plan.layers
            if layer.sparse_ratio is not None
        ],
        "on_cpu": [_named(layer) for layer in cpu_operators(plan)],
    }


def _memory(total: MemoryTotal) -> dict[str, int]:
    """The log prints six digits: the size is within ``bytes`` +- ``rounding``."""
    return {"bytes": total.bytes, "rounding": total.rounding}


def _named(layer: Layer) -> dict[str, Any]:
    return {"layer": layer.id, "operator": layer.op_type, "name": layer.name}


def builds_text(results: Sequence[Made | Failed], pruned: bool) -> str:
    """A few lines for each SoC. ``pruned``: the model declares a sparse mode, so that sparse layers count."""
    return "\n".join(line for result in results for line in _lines(result, pruned))


def _lines(result: Made | Failed, pruned: bool) -> Iterator[str]:
    if isinstance(result, Failed):
        yield f"{result.soc}: NOT BUILT: {result.message}"
        return
    compiled = result.build.compiled
    source = "from the cache" if compiled.cached else "built"
    size = result.file.stat().st_size
    yield f"{result.soc}: {result.file}, {size} bytes, RKNN-Toolkit2 {compiled.toolkit_version}, {source}"
    for number, plan in enumerate(result.build.log.plans, start=1):
        if len(result.build.log.plans) > 1:
            yield f"  input shape {number}"
        table = _plan(plan)
        yield from (f"  {line}" for line in _of_plan(table))
        if pruned:
            yield f"  sparse: {_sparse(result.soc, table['sparse'])}"


def _of_plan(plan: dict[str, Any]) -> Iterator[str]:
    yield f"memory: weights {_bytes(plan['weight'])}, internal {_bytes(plan['internal'])}"
    cycles = plan["predicted_cycles"]
    yield (
        f"predicted cycles: {cycles['total']} (DDR {cycles['ddr']}, NPU {cycles['npu']}) in {plan['layers']} "
        "layers"
    )
    on_cpu = ", ".join(_title(one) for one in plan["on_cpu"])
    yield f"on the CPU: {on_cpu or 'no operator'}"


def _sparse(soc: str, layers: Sequence[dict[str, Any]]) -> str:
    """The layers that run sparse, of those that the compiler names a ratio for."""
    if not SOCS[soc].sparse:
        return f"{soc} has no sparse inference (guide 4.1.7)"
    found = [f"{_title(one)} {_ratio(one)}" for one in layers if one["share"]]
    return f"{len(found)} of {len(layers)} layers" + (f": {', '.join(found)}" if found else "")


def _bytes(memory: dict[str, int]) -> str:
    return f"{memory['bytes']} bytes" + (f" (+- {memory['rounding']})" if memory["rounding"] else "")


def _title(one: dict[str, Any]) -> str:
    return f"{one['layer']} {one['name'] or one['operator']}"


def _ratio(one: dict[str, Any]) -> str:
    return f"{one['share']:.0%}" + (f" ({one['axis']})" if one["axis"] else "")
