"""LAT-09: the compiler's own predicted cycles against the stored ones of another toolkit version.

No clock is read, so simulator boards are judged too. What the compiler counts as free (Concat, pooling) is
not in its prediction: the predicted traffic is recorded beside it.
"""

from __future__ import annotations

import hashlib

import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import BuildOf, ItemRecord, LiveBoard
from pytest_rknpu.prebuilt import baseline_for
from pytest_rknpu.toolchain.cycles import add_up, cycles_by_layer, grown

# The prediction is exact and repeats itself; less than this is no regression worth a verdict.
TOLERATED = 0.01


@pytest.mark.runtimes("simulator")  # a prediction is the compiler's on this host, whatever board there is
@pytest.mark.requirement("LAT-09")
@pytest.mark.parametrize("model_name", models.names())
def test_predicted_cycles_have_not_grown(
    board: LiveBoard, build: BuildOf, record: ItemRecord, model_name: str
) -> None:
    """DDR, NPU and total cycles of the whole network; the layers that cost more are named."""
    built = build(model_name)
    installed, plan = built.compiled.toolkit_version, built.log.plan
    baseline = baseline_for(model_name, board.board.platform, installed)
    if hashlib.sha256(models.load(model_name).float_onnx).hexdigest() != baseline.onnx_sha256:
        raise Inconclusive(f"the baseline of {model_name} was taken of another version of the model")
    record.note(f"predicted by RKNN-Toolkit2 {installed}; no clock was read")
    found = cycles_by_layer(plan)
    for kind, cycles in (("", found), (f" by {baseline.toolkit_version}", baseline.layers)):
        total = add_up(cycles.values())
        for name in ("ddr", "npu", "total"):
            record.measure(f"predicted {name} cycles{kind}", getattr(total, name), "cycles")
    record.measure("predicted traffic", sum(layer.rw_kb for layer in plan.layers), "KiB")
    words = grown(baseline.layers, found, TOLERATED)
    if words:
        raise ConformanceFailure(
            f"{model_name} by RKNN-Toolkit2 {installed}, not {baseline.toolkit_version}: {'; '.join(words)}"
        )
