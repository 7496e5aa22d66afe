"""From the trained sparse classifiers to files and catalogue entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from pytest_rknpu.models.recipes import digits, sparse_digits
from pytest_rknpu.models.recipes.figures import top1_share
from pytest_rknpu.models.recipes.quantise import eleven_bits, quantise
from pytest_rknpu.models.recipes.sparse_digits import DENSE, RECIPES, SparseRecipe, Trained
from pytest_rknpu.models.recipes.write import REBUILD, Built, real_values
from pytest_rknpu.models.store import FLOAT, QDQ
from pytest_rknpu.sparsity import LayerReport, patterns


def build_sparse_digits(data: Mapping[str, NDArray[Any]]) -> list[Built]:
    """Trains all; ``data`` as from ``digits.split``."""
    trained = sparse_digits.train_all(data["training"], data["training_labels"])
    return [build_sparse(recipe, trained[recipe.name], data) for recipe in RECIPES]


def build_sparse(recipe: SparseRecipe, trained: Trained, data: Mapping[str, NDArray[Any]]) -> Built:
    """Quantises one model and measures it on the held-out pictures of ``digits_cnn``."""
    calibration = real_values(data["training"][: digits.CALIBRATION_SAMPLES], digits.GRID)
    qdq_onnx = quantise(trained.float_onnx, calibration, eleven_bits, source_grid=digits.GRID)
    inputs, labels = real_values(data["held_out"], digits.GRID), data["held_out_labels"]
    measured = {
        "float_top1": top1_share(trained.float_onnx, inputs, labels),
        "qdq_top1": top1_share(qdq_onnx, inputs, labels),
    }
    if recipe.mode is not None:
        measured["pruned_top1"] = top1_share(trained.pruned_onnx, inputs, labels)
    for layer, pattern in patterns(trained.float_onnx).items():
        measured[f"zeros_{layer}"] = round(pattern.zeros, 4)
    entry = {
        "description": recipe.description,
        "made": _made(recipe, trained.reports, len(data["training"])),
        "seed": sparse_digits.SEED,
        "licence": digits.LICENCE,
        "rebuild": f"{REBUILD} --train-sparse",
        "data_of": digits.NAME,
        "measured": measured,
    }
    return Built(recipe.name, entry, {FLOAT: trained.float_onnx, QDQ: qdq_onnx})


def _made(recipe: SparseRecipe, reports: tuple[LayerReport, ...], pictures: int) -> str:
    dense = f"{sparse_digits.DENSE_EPOCHS} epochs on {pictures} pictures"
    if recipe.mode is None:
        return f"trained by recipes/sparse_digits.py, {dense}; digits_cnn holds the data"
    source = DENSE.name if recipe.classifier is DENSE.classifier else f"a dense model of {dense}"
    layers = "; ".join(
        f"{report.layer.name}: {report.applied}"
        + (f" ({', '.join(report.reasons)})" if report.reasons else "")
        for report in reports
    )
    return (
        f"{source}, pruned by magnitude in mode {int(recipe.mode)}, then trained on for "
        f"{sparse_digits.TUNING_EPOCHS} epochs with the mask kept (recipes/sparse_digits.py). {layers}"
    )
