"""SPARSE-01, -02, -06: which layers the compiler builds sparse, as its log says (guide 4.1.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import HarnessError
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.models.recipes import sparse_probes
from pytest_rknpu.sparsity import MODES, Kind, Mode, prune_all, prune_onnx
from pytest_rknpu.sparsity.engagement import Shown, judge
from pytest_rknpu.sparsity.layers import Graph
from pytest_rknpu.sparsity.rows import shown_by
from pytest_rknpu.toolchain import Plan

Floats = NDArray[np.float32]
PlanOf = Callable[..., Plan]

# A build log is the host's: it says nothing of a board, and an emulated board builds nothing.
pytestmark = pytest.mark.runtimes("simulator")

MODE_IDS = {mode: f"mode{int(mode)}" for mode in Mode}
# One for each pattern: mode 3 differs from mode 2 only in which of the weights it keeps.
PATTERNS = (Mode.INPUT, Mode.OUTPUT, Mode.INPUT_THEN_OUTPUT)


def built(onnx: bytes, calibration: Floats | None, plan_of: PlanOf, record: ItemRecord) -> list[Shown]:
    """What the compiler makes of each layer, written down; ``calibration`` None: in float16."""
    shown = shown_by(onnx, plan_of(onnx, calibration).layers)
    for one in shown:
        record.measure(f"SparseRatio of {one.layer.name}", str(one.ratio))
        if one.outside:
            record.note(f"{one.layer.name} is outside the guide's limits: {', '.join(one.outside)}")
    return shown


def within_limits(shown: Sequence[Shown], mode: Mode) -> list[Shown]:
    """The layers that the guide promises to be sparse; all of them must have been pruned in ``mode``."""
    inside, kind = [one for one in shown if not one.outside], MODES[mode].kind
    for one in inside:
        if one.kind is not kind:
            raise HarnessError(f"layer {one.layer.name!r} was to hold {kind}, it holds {one.kind}")
    return inside


@pytest.mark.requirement("SPARSE-01")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("mode", Mode, ids=MODE_IDS.get)
def test_pruned_layers_run_sparse(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, mode: Mode
) -> None:
    """Convolutions and a linear layer within the limits, pruned in each of the four modes."""
    probe = sparse_probes.aligned()
    shown = built(prune_onnx(probe.onnx, mode)[0], probe.calibration, plan_of, record)
    judge(within_limits(shown, mode), toolkit, board.board.soc)


@pytest.mark.requirement("SPARSE-01")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("mode", PATTERNS, ids=MODE_IDS.get)
def test_linear_layers_behind_flatten_run_sparse(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, mode: Mode
) -> None:
    """Where a linear layer mostly stands: behind the flattened picture of the last convolution."""
    probe = sparse_probes.flattened()
    shown = built(prune_onnx(probe.onnx, mode)[0], probe.calibration, plan_of, record)
    judge(within_limits(shown, mode), toolkit, board.board.soc)


@pytest.mark.requirement("SPARSE-02")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("mode", PATTERNS, ids=MODE_IDS.get)
def test_layers_outside_the_limits_stay_dense(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, mode: Mode
) -> None:
    """All are pruned all the same, so that only the compiler can leave them dense."""
    probe = sparse_probes.beyond()
    shown = built(prune_all(probe.onnx, mode), probe.calibration, plan_of, record)
    judge(shown, toolkit, board.board.soc)


@pytest.mark.requirement("SPARSE-02")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize("mode", PATTERNS, ids=MODE_IDS.get)
def test_float16_layers_stay_dense(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, mode: Mode
) -> None:
    """The layers of SPARSE-01, not quantised."""
    shown = built(prune_onnx(sparse_probes.aligned().onnx, mode)[0], None, plan_of, record)
    judge(shown, toolkit, board.board.soc)


@pytest.mark.requirement("SPARSE-02")
@pytest.mark.needs("sparse")
def test_a_trained_model_outside_the_limits_stays_dense(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord
) -> None:
    """digits_unaligned: a classifier pruned 16:4 with odd channel counts, groups and a linear layer."""
    model = models.load("digits_unaligned")
    judge(built(model.float_onnx, model.calibration, plan_of, record), toolkit, board.board.soc)


def spoiled(onnx: bytes) -> bytes:
    """The first block of 4 x 4 channels of each layer is filled up, with weights that quantising keeps."""
    graph = Graph(onnx)
    for layer in graph.layers():
        weights = graph.weights(layer)
        weights[:4, :4] = np.median(np.abs(weights[weights != 0]))
        graph.replace(layer, weights)
    return graph.content()


def almost(mode: Mode) -> Callable[[bytes], bytes]:
    """Pruned in ``mode``, but for one block of each layer."""
    return lambda onnx: spoiled(prune_onnx(onnx, mode)[0])


@pytest.mark.requirement("SPARSE-06")
@pytest.mark.needs("sparse")
@pytest.mark.parametrize(
    "weights",
    [bytes, *(almost(mode) for mode in PATTERNS)],
    ids=["dense", *(f"almost-{MODE_IDS[mode]}" for mode in PATTERNS)],
)
def test_dense_weights_stay_dense(
    board: LiveBoard, plan_of: PlanOf, toolkit: str, record: ItemRecord, weights: Callable[[bytes], bytes]
) -> None:
    """No layer without a pattern runs sparse, though one block of channels is all that is amiss."""
    probe = sparse_probes.aligned()
    shown = built(weights(probe.onnx), probe.calibration, plan_of, record)
    for one in shown:
        if one.kind is not Kind.NONE:
            raise HarnessError(f"layer {one.layer.name!r} was to hold no pattern, it holds {one.kind}")
    judge(shown, toolkit, board.board.soc)
