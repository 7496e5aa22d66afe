"""load(): what the catalogue says is what one gets, or a ModelError that says what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.errors import ModelError
from pytest_rknpu.models.store import FOLDER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of one model and the whole catalogue, to spoil."""
    shutil.copy(FOLDER / "catalogue.json", tmp_path)
    for name in ("probe_pointwise", "digits_cnn"):
        shutil.copytree(FOLDER / "files" / name, tmp_path / "files" / name)
    return tmp_path


def test_all_models_of_the_catalogue_load() -> None:
    assert set(models.names()) >= {
        "probe_pointwise",
        "probe_chain",
        "probe_wide",
        "probe_stride",
        "digits_cnn",
    }
    for name in models.names():
        model = models.load(name)
        assert model.name == name
        assert model.calibration.dtype == np.float32
        assert model.calibration.ndim == 4
        assert len(model.calibration) > 0
        assert model.provenance.licence
        assert model.provenance.made
        assert model.provenance.rebuild.startswith("python -m pytest_rknpu.models.recipes")
        own_data = set() if model.provenance.data_of else {"calibration.npz"}
        assert set(model.provenance.sha256) >= {"float.onnx", "qdq.onnx"} | own_data


def test_the_folder_holds_what_the_catalogue_names_and_no_more() -> None:
    named = {f"{name}/{file}" for name in models.names() for file in models.load(name).provenance.sha256}
    present = {str(path.relative_to(FOLDER / "files")) for path in (FOLDER / "files").glob("*/*")}
    assert present == named


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in (FOLDER / "files").glob("*/*")) < 1_500_000


def test_calibration_cannot_be_changed_by_a_reader() -> None:
    with pytest.raises(ValueError, match="read-only"):
        models.load("probe_chain").calibration[0] = 0


def test_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ModelError, match=r"no model 'probe_chian'.*probe_chain"):
        models.load("probe_chian")


def test_missing_file_names_the_rebuild_command(folder: Path) -> None:
    (folder / "files" / "probe_pointwise" / "qdq.onnx").unlink()
    with pytest.raises(ModelError, match=r"qdq\.onnx.*No such file.*rebuild it: python -m pytest_rknpu"):
        models.load("probe_pointwise", folder)


@pytest.mark.parametrize("file", ["float.onnx", "qdq.onnx", "calibration.npz"])
def test_one_flipped_bit_is_refused(folder: Path, file: str) -> None:
    path = folder / "files" / "probe_pointwise" / file
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=rf"{file} is not the file of the catalogue"):
        models.load("probe_pointwise", folder)


def test_truncated_file_is_refused(folder: Path) -> None:
    path = folder / "files" / "digits_cnn" / "labelled.npz"
    path.write_bytes(path.read_bytes()[:-1])
    models.load("digits_cnn", folder)
    with pytest.raises(ModelError, match=r"labelled\.npz is not the file"):
        models.load_labelled("digits_cnn", folder)


def test_missing_catalogue(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="reinstall"):
        models.names(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_broken_catalogue(folder: Path, text: str) -> None:
    (folder / "catalogue.json").write_text(text)
    with pytest.raises(ModelError, match="unreadable"):
        models.names(folder)


def test_archive_that_is_none_is_refused(folder: Path) -> None:
    """Right hash, wrong content: a catalogue and a file that were changed together."""
    import hashlib

    content = b"no archive"
    (folder / "files" / "probe_pointwise" / "calibration.npz").write_bytes(content)
    catalogue = json.loads((folder / "catalogue.json").read_text())
    entry = catalogue["models"]["probe_pointwise"]
    entry["sha256"]["calibration.npz"] = hashlib.sha256(content).hexdigest()
    (folder / "catalogue.json").write_text(json.dumps(catalogue))
    with pytest.raises(ModelError, match="no array archive"):
        models.load("probe_pointwise", folder)


def test_a_probe_has_no_labels() -> None:
    with pytest.raises(ModelError, match="no labelled data"):
        models.load_labelled("probe_chain")
