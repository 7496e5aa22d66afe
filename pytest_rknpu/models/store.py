"""Reading the catalogue: a model is what its catalogue entry's hashes say, or it is refused.

An entry with ``data_of`` has no data files of its own: it was calibrated on, and is judged by, those of the
model it names.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError

FOLDER = Path(__file__).parent
CATALOGUE = "catalogue.json"
FLOAT, QDQ, CALIBRATION, LABELLED = "float.onnx", "qdq.onnx", "calibration.npz", "labelled.npz"


@dataclass(frozen=True)
class Provenance:
    """Where a model comes from. ``sha256`` is by file name; ``measured`` was taken when it was built.

    ``data_of`` is the model whose calibration and labelled data this one shares, None if it has its own.
    """

    made: str
    seed: int
    licence: str
    rebuild: str
    sha256: Mapping[str, str]
    measured: Mapping[str, float]
    data_of: str | None = None


@dataclass(frozen=True)
class Model:
    """One model in float and in quantised (QDQ: int8 activations and weights) form.

    ``calibration`` is float32 (N, C, H, W), in the unit of the model's float input. All of it lies on the
    grid of the first QuantizeLinear, so quantising it loses nothing.
    """

    name: str
    description: str
    float_onnx: bytes
    qdq_onnx: bytes
    calibration: NDArray[np.float32]
    provenance: Provenance


@dataclass(frozen=True)
class Labelled:
    """Held-out data that training never saw: inputs float32 (N, C, H, W), labels int64 (N,)."""

    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]


def names(folder: Path = FOLDER) -> tuple[str, ...]:
    """The names of all models, sorted."""
    return tuple(sorted(_catalogue(folder)))


def load(name: str, folder: Path = FOLDER) -> Model:
    """Reads a model. ModelError: unknown name, missing file, or a file whose hash is not the catalogue's."""
    entry = _entry(name, folder)
    data = entry.get("data_of", name)
    return Model(
        name,
        entry["description"],
        _read(name, FLOAT, entry, folder),
        _read(name, QDQ, entry, folder),
        _inputs(_arrays(data, CALIBRATION, _entry(data, folder), folder)),
        _provenance(entry),
    )


def load_labelled(name: str, folder: Path = FOLDER) -> Labelled:
    """Reads a model's held-out set. ModelError as for ``load``, and for a model that has none."""
    data = _entry(name, folder).get("data_of", name)
    entry = _entry(data, folder)
    if LABELLED not in entry["sha256"]:
        raise ModelError(f"model {name!r} has no labelled data; it is no classifier")
    arrays = _arrays(data, LABELLED, entry, folder)
    return Labelled(_inputs(arrays), arrays["labels"].astype(np.int64))


def _catalogue(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / CATALOGUE
    try:
        models: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["models"]
    except FileNotFoundError:
        raise ModelError(f"the model catalogue {path} is missing: reinstall pytest-rknpu") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the model catalogue {path} is unreadable ({error}): reinstall it") from error
    return models


def _entry(name: str, folder: Path) -> dict[str, Any]:
    catalogue = _catalogue(folder)
    if name not in catalogue:
        raise ModelError(f"there is no model {name!r}; there are {', '.join(sorted(catalogue))}")
    return catalogue[name]


def _provenance(entry: Mapping[str, Any]) -> Provenance:
    return Provenance(
        entry["made"],
        entry["seed"],
        entry["licence"],
        entry["rebuild"],
        MappingProxyType(entry["sha256"]),
        MappingProxyType(entry["measured"]),
        entry.get("data_of"),
    )


def _read(name: str, file: str, entry: Mapping[str, Any], folder: Path) -> bytes:
    path = folder / "files" / name / file
    remedy = f"reinstall pytest-rknpu, or rebuild it: {entry['rebuild']}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"model {name!r}: cannot read {path} ({error.strerror}); {remedy}") from error
    found, expected = hashlib.sha256(content).hexdigest(), entry["sha256"][file]
    if found != expected:
        raise ModelError(
            f"model {name!r}: {path} is not the file of the catalogue "
            f"({len(content)} bytes, sha256 {found[:16]}..., expected {expected[:16]}...); {remedy}"
        )
    return content


def _arrays(name: str, file: str, entry: Mapping[str, Any], folder: Path) -> dict[str, NDArray[Any]]:
    content = _read(name, file, entry, folder)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise ModelError(f"model {name!r}: {file} is no array archive ({error})") from error


def _inputs(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """Inputs are stored as the int8 they quantise to, a quarter the size: real = (stored - zero) * scale."""
    stored = arrays["stored"].astype(np.float32)
    inputs: NDArray[np.float32] = (stored - np.float32(arrays["zero_point"])) * np.float32(arrays["scale"])
    inputs.setflags(write=False)
    return inputs
