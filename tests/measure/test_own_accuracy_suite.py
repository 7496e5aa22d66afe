"""ACC-07 on the user's models and on a board's own outputs: what ends red, what ends as measured."""

from __future__ import annotations

from math import nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from suite_modules import suite

from pytest_rknpu.errors import HarnessError, Inconclusive
from pytest_rknpu.measure import locate
from pytest_rknpu.models.user_data import Samples
from pytest_rknpu.session import UserModel
from pytest_rknpu.toolchain.layer_errors import LayerError
from pytest_rknpu.verdict import ItemRecord

OWN = suite("accuracy/test_own_models.py")
LOCALISATION = suite("accuracy/test_localisation.py")
ONE = Samples((np.zeros((3, 4), np.float32),))


def analysed(monkeypatch: pytest.MonkeyPatch, *cosines: float | None) -> ItemRecord:
    """The test on the simulator, whose accuracy_analysis says ``cosines``."""
    layers = tuple(
        LayerError("Conv", f"layer{number}", cosine, cosine) for number, cosine in enumerate(cosines)
    )
    monkeypatch.setattr(OWN, "analyse_user_model", lambda platform, model, sample: layers)
    record = ItemRecord("accuracy", ("ACC-07",), 1)
    model = UserModel(SimpleNamespace(built_dtype="w8a8", name="mine"))  # type: ignore[arg-type]
    board: Any = SimpleNamespace(board=SimpleNamespace(runtime="simulator", platform="rk3588"))
    subject: Any = SimpleNamespace(model=model, name="mine", samples=ONE)
    OWN.test_each_layer_is_held_against_the_float_model(board, subject, record)
    return record


def test_layers_are_measured_and_that_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        pytest.skip.Exception, match=r"measured, not judged: of 3 layers .*: Conv layer2 0\.5, "
    ):
        analysed(monkeypatch, 0.999, 0.98, 0.5, None, nan)


def test_layers_that_are_all_degenerate_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Inconclusive, match="all 2 layers are degenerate"):
        analysed(monkeypatch, nan, None)


class Board:
    """A board that computes two frames; its output lies in memory as int8 in atoms of 16."""

    def __init__(self, frames: np.ndarray) -> None:
        native = SimpleNamespace(shape=frames.shape[1:], native={})
        self.session = None
        self.record = ItemRecord("accuracy", ("ACC-07",), 1)
        self.model = lambda name: SimpleNamespace(description=SimpleNamespace(outputs=[native]))


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    frames = np.arange(2 * 16 * 2 * 8, dtype=np.float32).reshape(2, 16, 2, 8)
    monkeypatch.setattr(LOCALISATION, "infer", lambda npu, model, inputs: [frames])
    layout = LOCALISATION.memory_layout
    assert callable(layout)
    from pytest_rknpu.measure import MemoryLayout

    monkeypatch.setattr(LOCALISATION, "memory_layout", lambda native, shape: MemoryLayout(16, 1))
    return frames


def run(frames: np.ndarray) -> ItemRecord:
    npu: Any = Board(frames)
    LOCALISATION.test_a_stale_cache_line_is_found_where_it_is(npu, "probe_pointwise")
    record: ItemRecord = npu.record
    return record


def test_a_right_location_passes(frames: np.ndarray) -> None:
    assert {m.name: m.value for m in run(frames).measurements}["cache lines planted and found"] == 4


def test_a_wrong_location_is_noticed(frames: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(reference: np.ndarray, actual: np.ndarray, *arguments: Any) -> Any:
        return locate(reference[..., ::-1, :], actual[..., ::-1, :], *arguments)

    monkeypatch.setattr(LOCALISATION, "locate", elsewhere)
    with pytest.raises(HarnessError, match="planted in line 0, found in"):
        run(frames)


def test_frames_that_do_not_differ_show_nothing(frames: np.ndarray) -> None:
    frames[1] = frames[0]
    with pytest.raises(HarnessError, match="line 0 does not differ between two inferences"):
        run(frames)
