"""ACC-06, ACC-07: what the models of boards.toml lose, and where (docs/user-models.md)."""

from __future__ import annotations

from math import isnan

import pytest

from pytest_rknpu.errors import ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import ItemRecord, LiveBoard
from pytest_rknpu.session import Subject, UserModel, UserModels
from pytest_rknpu.session.own_builds import own_build
from pytest_rknpu.toolchain.board import analyse_layers

WORST_SHOWN = 3


def own(user_models: UserModels, name: str) -> UserModel:
    model = user_models.get(name)
    assert model is not None  # these tests are for models of boards.toml alone
    return model


@pytest.mark.requirement("ACC-06")
@pytest.mark.models
def test_no_more_operators_fall_to_the_cpu_than_declared(
    board: LiveBoard, user_models: UserModels, record: ItemRecord, model_name: str
) -> None:
    """The compiler's table says where each operator runs, cpu_operators says how many may fall."""
    model = own(user_models, model_name)
    fallen = own_build(board.board, model).cpu_operators
    record.measure("operators on the CPU", len(fallen))
    record.note(f"on the CPU: {', '.join(fallen) or 'none'}")
    allowed = model.table.cpu_operators
    if allowed is None:
        pytest.skip(
            f'measured, not judged: [[model]] "{model_name}" declares no cpu_operators '
            f"({len(fallen)} fell to the CPU)"
        )
    if len(fallen) > allowed:
        raise ConformanceFailure(
            f"{model_name} on {board.board.soc}: {len(fallen)} operators fell to the CPU, declared: at most "
            f"{allowed}: {', '.join(fallen)}"
        )


@pytest.mark.requirement("ACC-07")
@pytest.mark.models
def test_each_layer_is_held_against_the_float_model(
    board: LiveBoard, subject: Subject, record: ItemRecord
) -> None:
    """The toolkit's accuracy_analysis of one sample names the layers that lose most. Measured, not judged."""
    runtime, model = board.board.runtime, subject.model
    assert isinstance(model, UserModel)
    if runtime not in ("simulator", "connected"):
        pytest.skip(f"{board.board.name}: accuracy_analysis needs the simulator or a connected board")
    if model.table.built_dtype == "prequantised":
        pytest.skip(
            f"{subject.name} is quantised already: accuracy_analysis has no float model to compare with"
        )
    sample = [array[:1] for array in subject.samples.inputs]
    if runtime == "connected":
        layers = board.session.layers(model, sample)
    else:
        platform = board.board.platform
        layers = analyse_layers(model.require_source(), model.options(platform), sample)
    judged = [layer for layer in layers if layer.entire is not None and not isnan(layer.entire)]
    if not judged:
        raise Inconclusive(f"mistrusted: all {len(layers)} layers are degenerate on the first sample")
    record.measure("layers", len(judged))
    worst = sorted(judged, key=lambda layer: layer.entire or 0.0)[:WORST_SHOWN]
    for layer in worst:
        record.measure(f"cosine of {layer.operator} {layer.name}", layer.entire or 0.0)
        if layer.runtime_entire is not None:
            record.measure(f"cosine on the board of {layer.operator} {layer.name}", layer.runtime_entire)
