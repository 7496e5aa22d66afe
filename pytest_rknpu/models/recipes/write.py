"""From a recipe to files: what the rebuild command and the test of it share."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.figures import probe_figures, top1_share
from pytest_rknpu.models.recipes.probes import Recipe, calibration_bytes
from pytest_rknpu.models.recipes.quantise import Grid, eleven_bits, power_of_two, quantise
from pytest_rknpu.models.store import CALIBRATION, CATALOGUE, FLOAT, LABELLED, QDQ

#: The earliest that a zip file can say.
_NO_DATE = (1980, 1, 1, 0, 0, 0)

REBUILD = "python -m pytest_rknpu.models.recipes"


@dataclass(frozen=True)
class Built:
    """All that is written for one model: contents by file name, and its catalogue entry less the hashes."""

    name: str
    entry: Mapping[str, Any]
    files: Mapping[str, bytes]


def real_values(stored: NDArray[np.int8], grid: Grid) -> NDArray[np.float32]:
    real: NDArray[np.float32] = (stored.astype(np.float32) - grid.zero_point) * np.float32(grid.scale)
    return real


def archive(**arrays: NDArray[Any]) -> bytes:
    """An .npz (a zip file of .npy files) without time stamp and compression.

    np.savez streams its members, and Python versions write the headers of such members differently.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as members:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            members.writestr(zipfile.ZipInfo(f"{name}.npy", _NO_DATE), content.getvalue())
    return buffer.getvalue()


def grid_arrays(stored: NDArray[np.int8], grid: Grid) -> dict[str, NDArray[Any]]:
    return {
        "stored": stored,
        "scale": np.array(grid.scale, dtype=np.float32),
        "zero_point": np.array(grid.zero_point, dtype=np.int8),
    }


def build_probe(recipe: Recipe) -> Built:
    stored = calibration_bytes(recipe)
    calibration = real_values(stored, recipe.source_grid)
    float_onnx = recipe.build(np.random.default_rng(recipe.seed))
    qdq_onnx = quantise(float_onnx, calibration, power_of_two, source_grid=recipe.source_grid)
    entry = {
        "description": recipe.description,
        "made": "generated: random integer weights on a power-of-two grid, not trained",
        "seed": recipe.seed,
        "licence": "Apache-2.0 (part of pytest-rknpu)",
        "rebuild": REBUILD,
        "measured": probe_figures(qdq_onnx, recipe.source_grid, recipe.source_shape, recipe.seed),
    }
    files = {
        FLOAT: float_onnx,
        QDQ: qdq_onnx,
        CALIBRATION: archive(**grid_arrays(stored, recipe.source_grid)),
    }
    return Built(recipe.name, entry, files)


def build_digits(float_onnx: bytes, data: Mapping[str, NDArray[Any]]) -> Built:
    """``data`` as from ``digits.split``. Derives all other files from the float model that training made."""
    stored = data["training"][: digits.CALIBRATION_SAMPLES]
    qdq_onnx = quantise(float_onnx, real_values(stored, digits.GRID), eleven_bits, source_grid=digits.GRID)
    held_out, labels = data["held_out"], data["held_out_labels"]
    inputs = real_values(held_out, digits.GRID)
    entry = {
        "description": "A classifier of handwritten digits drawn as ink on paper (RGB, 16x16), trained",
        "made": f"trained by recipes/digits.py, {digits.EPOCHS} epochs on {len(data['training'])} pictures; "
        f"{len(held_out)} others are held out",
        "seed": digits.SEED,
        "licence": digits.LICENCE,
        "rebuild": f"{REBUILD} --train",
        "measured": {
            "float_top1": top1_share(float_onnx, inputs, labels),
            "qdq_top1": top1_share(qdq_onnx, inputs, labels),
        },
    }
    files = {
        FLOAT: float_onnx,
        QDQ: qdq_onnx,
        CALIBRATION: archive(**grid_arrays(stored, digits.GRID)),
        LABELLED: archive(**grid_arrays(held_out, digits.GRID), labels=labels),
    }
    return Built(digits.NAME, entry, files)


def write(models: list[Built], folder: Path) -> None:
    """Writes files and catalogue below ``folder``; entries of models that are not given stay."""
    path = folder / CATALOGUE
    catalogue = json.loads(path.read_text(encoding="utf-8"))["models"] if path.exists() else {}
    for model in models:
        target = folder / "files" / model.name
        target.mkdir(parents=True, exist_ok=True)
        for name, content in model.files.items():
            (target / name).write_bytes(content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in model.files.items()}
        catalogue[model.name] = {**model.entry, "sha256": hashes}
    path.write_text(json.dumps({"models": catalogue}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
