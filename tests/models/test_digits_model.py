"""The classifier: its data really held out, its quantised form derived from the float one."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_rknpu import models
from pytest_rknpu.measure import count_top1
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.quantise import eleven_bits, quantise
from pytest_rknpu.models.recipes.write import build_digits


def test_requantising_gives_the_same_bytes() -> None:
    model = models.load("digits_cnn")
    again = quantise(model.float_onnx, model.calibration, eleven_bits, source_grid=digits.GRID)
    assert again == model.qdq_onnx


def test_top1_is_what_the_catalogue_says() -> None:
    model, labelled = models.load("digits_cnn"), models.load_labelled("digits_cnn")
    shares = {
        form: count_top1(run_onnx(content, labelled.inputs)[0], labelled.labels).share
        for form, content in (("float", model.float_onnx), ("qdq", model.qdq_onnx))
    }
    assert shares["float"] >= 0.95
    assert shares["float"] == model.provenance.measured["float_top1"]
    assert shares["qdq"] == model.provenance.measured["qdq_top1"]


def test_held_out_pictures_are_not_the_calibration_ones() -> None:
    """No picture twice: a leak would flatter the quantised model."""
    calibration = {sample.tobytes() for sample in models.load("digits_cnn").calibration}
    labelled = models.load_labelled("digits_cnn")
    held_out = {sample.tobytes() for sample in labelled.inputs}
    assert not calibration & held_out
    assert len(held_out) > 390
    assert np.bincount(labelled.labels, minlength=10).min() > 25


def test_data_files_come_from_the_data_set() -> None:
    """Needs scikit-learn, which carries the pictures."""
    pytest.importorskip("sklearn", reason="pip install 'pytest-rknpu[train]'")
    data = digits.split()
    built = build_digits(models.load("digits_cnn").float_onnx, data)
    provenance = models.load("digits_cnn").provenance
    from hashlib import sha256

    assert {n: sha256(c).hexdigest() for n, c in built.files.items()} == dict(provenance.sha256)
    assert built.entry["measured"] == dict(provenance.measured)
    training = {sample.tobytes() for sample in data["training"]}
    assert not training & {sample.tobytes() for sample in data["held_out"]}


def test_pictures_are_ink_on_paper() -> None:
    stored = digits.drawn(np.array([np.zeros((8, 8)), np.full((8, 8), 16)]))
    assert stored.shape == (2, 3, 16, 16)
    assert [int(c) + 128 for c in stored[0, :, 0, 0]] == list(digits.PAPER)
    assert [int(c) + 128 for c in stored[1, :, 15, 15]] == list(digits.INK)
