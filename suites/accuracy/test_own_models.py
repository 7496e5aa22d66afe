"""ACC-07 for the models of boards.toml: where they lose what they lose (docs/user-models.md)."""

from __future__ import annotations

from math import isnan

import pytest

from pytest_rknpu.errors import Inconclusive
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.session import Subject, UserModel
from pytest_rknpu.session.user_inference import analyse_user_model

WORST_SHOWN = 3


@pytest.mark.runtimes("simulator", "connected")  # RKNN-Toolkit2's accuracy_analysis
@pytest.mark.requirement("ACC-07")
@pytest.mark.models
def test_each_layer_is_held_against_the_float_model(
    board: LiveBoard, subject: Subject, record: ItemRecord
) -> None:
    """The toolkit's accuracy_analysis of one sample names the layers that lose most. Measured, not judged."""
    model = subject.model
    assert isinstance(model, UserModel)  # this test is for models of boards.toml alone
    if model.table.built_dtype == "prequantised":
        pytest.skip(
            f"{subject.name} is quantised already: accuracy_analysis has no float model to compare with"
        )
    sample = [array[:1] for array in subject.samples.inputs]
    if board.board.runtime == "connected":
        layers = board.session.layers(model, sample)
    else:
        layers = analyse_user_model(board.board.platform, model, sample)
    judged = [layer for layer in layers if layer.entire is not None and not isnan(layer.entire)]
    if not judged:
        raise Inconclusive(f"mistrusted: all {len(layers)} layers are degenerate on the first sample")
    record.measure("layers", len(judged))
    worst = sorted(judged, key=lambda layer: layer.entire or 0.0)[:WORST_SHOWN]
    for layer in worst:
        record.measure(f"cosine of {layer.operator} {layer.name}", layer.entire or 0.0)
        if layer.runtime_entire is not None:
            record.measure(f"cosine on the board of {layer.operator} {layer.name}", layer.runtime_entire)
    named = ", ".join(f"{layer.operator} {layer.name} {layer.entire:.6g}" for layer in worst)
    pytest.skip(f"measured, not judged: of {len(judged)} layers these lose most (cosine): {named}")
