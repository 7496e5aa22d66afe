"""The sparse classifiers that are shipped: pruned as they say, and as accurate as they say."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.measure import loss_bound, pair, right_answers
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.figures import top1_share
from pytest_rknpu.models.recipes.quantise import eleven_bits, quantise
from pytest_rknpu.models.recipes.sparse_digits import RECIPES, SparseRecipe
from pytest_rknpu.models.store import FOLDER
from pytest_rknpu.sparsity import INFERENCE, MODES, Kind, Mode, patterns, prune_onnx, reasons
from pytest_rknpu.sparsity.layers import Graph

NAMES = [recipe.name for recipe in RECIPES]
ALIGNED = {"tall", "pointwise"}


@pytest.mark.parametrize("name", NAMES)
def test_small_with_provenance_and_borrowed_data(name: str) -> None:
    provenance = models.load(name).provenance
    assert provenance.data_of == "digits_cnn"
    assert set(provenance.sha256) == {"float.onnx", "qdq.onnx"}
    assert all(path.stat().st_size < 100_000 for path in (FOLDER / "files" / name).iterdir())
    assert provenance.rebuild == "python -m pytest_rknpu.models.recipes --train-sparse"
    assert "recipes/sparse_digits.py" in provenance.made
    assert np.array_equal(models.load(name).calibration, models.load("digits_cnn").calibration)
    assert np.array_equal(models.load_labelled(name).labels, models.load_labelled("digits_cnn").labels)


@pytest.mark.parametrize("name", NAMES)
def test_top1_is_what_the_catalogue_says(name: str) -> None:
    model, labelled = models.load(name), models.load_labelled(name)
    measured = model.provenance.measured
    assert measured["float_top1"] == top1_share(model.float_onnx, labelled.inputs, labelled.labels)
    assert measured["qdq_top1"] == top1_share(model.qdq_onnx, labelled.inputs, labelled.labels)
    assert measured["float_top1"] >= 0.98
    # Fine-tuning brought back what pruning alone loses.
    assert measured.get("pruned_top1", 0.0) < measured["float_top1"]


@pytest.mark.parametrize("name", NAMES)
def test_requantising_gives_the_same_bytes(name: str) -> None:
    model = models.load(name)
    again = quantise(model.float_onnx, model.calibration, eleven_bits, source_grid=digits.GRID)
    assert again == model.qdq_onnx


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("form", ["float_onnx", "qdq_onnx"])
def test_layers_hold_the_pattern_of_their_mode(recipe: SparseRecipe, form: str) -> None:
    """Quantising may add zeros, but takes none away."""
    model = models.load(recipe.name)
    held = patterns(getattr(model, form))
    reports = () if recipe.mode is None else prune_onnx(model.float_onnx, recipe.mode)[1]
    expected = {report.layer.name: report.applied for report in reports}
    for layer, pattern in held.items():
        assert pattern.kind is expected.get(layer, Kind.NONE), layer
        assert pattern.zeros >= model.provenance.measured[f"zeros_{layer}"] - 1e-3


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.mode is not None], ids=lambda recipe: recipe.name)
def test_pruning_again_changes_nothing(recipe: SparseRecipe) -> None:
    """The mask was kept while the model was trained on."""
    content = models.load(recipe.name).float_onnx
    assert recipe.mode is not None
    _, reports = prune_onnx(content, recipe.mode)
    assert all(report.kept == 1.0 for report in reports)


def test_aligned_and_unaligned_are_what_they_are_called() -> None:
    for name in NAMES:
        inside = {x.name for x in Graph(models.load(name).float_onnx).layers() if not reasons(x, INFERENCE)}
        assert inside == (set() if name == "digits_unaligned" else ALIGNED)
    by_mode = {recipe.mode: recipe.name for recipe in RECIPES if recipe.name.startswith("digits_aligned")}
    assert {MODES[mode].kind for mode in by_mode if mode is not None} == {Kind.INPUT, Kind.OUTPUT, Kind.GRID}
    assert Mode.OUTPUT_THEN_INPUT not in by_mode


@pytest.mark.parametrize("name", ["digits_aligned_input", "digits_aligned_output", "digits_aligned_grid"])
@pytest.mark.parametrize("form", ["float_onnx", "qdq_onnx"])
def test_siblings_lose_little_against_the_dense_model(name: str, form: str) -> None:
    """What SPARSE-05 asks, without a board between: the margin can be met."""
    labelled = models.load_labelled(name)
    right = [
        right_answers(run_onnx(getattr(models.load(each), form), labelled.inputs)[0], labelled.labels)
        for each in ("digits_aligned", name)
    ]
    assert loss_bound(pair(*right)) < 0.03


def test_catalogue_entries_come_from_the_data_set() -> None:
    """Needs scikit-learn, which carries the pictures; training itself is not repeated."""
    pytest.importorskip("sklearn", reason="pip install 'pytest-rknpu[train]'")
    from pytest_rknpu.models.recipes.sparse_digits import Trained
    from pytest_rknpu.models.recipes.sparse_files import build_sparse

    data = digits.split()
    for recipe in RECIPES:
        model = models.load(recipe.name)
        built = build_sparse(recipe, Trained(model.float_onnx, model.float_onnx, ()), data)
        assert built.files == {"float.onnx": model.float_onnx, "qdq.onnx": model.qdq_onnx}
        figures = {key: value for key, value in model.provenance.measured.items() if key != "pruned_top1"}
        assert {key: built.entry["measured"][key] for key in figures} == figures
