"""A model as a test sees it, shipped or a ``[[model]]`` of boards.toml: what to feed, what to hold it to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_rknpu import models
from pytest_rknpu.errors import ModelError, UserModelError
from pytest_rknpu.measure import Tolerance
from pytest_rknpu.models.execute import run_onnx
from pytest_rknpu.models.tolerances import DECLARED
from pytest_rknpu.models.user_data import Floats, Samples
from pytest_rknpu.session.user_faults import table_of
from pytest_rknpu.session.user_models import UserModel, UserModels

if TYPE_CHECKING:
    from pytest_rknpu.inventory.model_table import ToleranceTable

UNJUDGED = Tolerance(-1.0, -inf, inf, inf)
"""Holds for anything: what nobody declared is measured."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A model under test on one SoC.

    ``tolerances`` has one entry for each output, or one for all, or none where nothing is declared;
    ``top1_drop`` is a share of the labelled samples, None if no classifier; ``float_top1`` is the share that
    the float model gets right at least.
    """

    name: str
    model: models.Model | UserModel
    samples: Samples
    tolerances: tuple[Tolerance, ...]
    top1_drop: float | None
    float_top1: float | None
    _float_outputs: Callable[[Samples], tuple[list[Floats], str]]

    def float_outputs(self, samples: Samples) -> tuple[list[Floats], str]:
        """The float model's outputs for ``samples``, each (N, ...), and by what they were computed.

        Skips with the proof where there is no float model. Raises ModelError, ToolkitError, UserModelError.
        """
        return self._float_outputs(samples)

    @property
    def declares(self) -> bool:
        """Whether anything about its accuracy is declared."""
        return bool(self.tolerances) or self.top1_drop is not None

    def tolerances_for(self, outputs: int) -> list[Tolerance]:
        """One for each of ``outputs``. UserModelError: another number is declared."""
        declared = self.tolerances or (UNJUDGED,)
        if len(declared) not in (1, outputs):
            raise UserModelError(
                f"{table_of(self.name, 'tolerances')}: has {len(declared)} entries, the model has {outputs} "
                "outputs; give one for all, or one for each"
            )
        return list(declared) * outputs if len(declared) == 1 else list(declared)

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """The labels of ``samples``."""
        return self.samples.labels


def scores_of(outputs: Sequence[Floats], subject: Subject) -> Floats:
    """Output 0 as the scores (N, classes) of a classifier, places of one pixel taken away.

    UserModelError: it is none, or the labels name classes that it does not have.
    """
    scores, labels = outputs[0], subject.labels
    where = table_of(subject.name, "labelled")
    classes = int(np.prod(scores.shape[1:]))
    if scores.ndim < 2 or classes < 2 or max(scores.shape[1:]) != classes:
        raise UserModelError(
            f"{where}: top-1 needs scores (N, classes), output 0 has shape {scores.shape}; leave out "
            "top1_drop, float_top1 and pruning_loss, or cut the graph where the scores are (outputs)"
        )
    if labels is not None and labels.max() >= classes:
        raise UserModelError(
            f"{where}: labels reach {int(labels.max())}, output 0 has {classes} classes, counted from 0"
        )
    return scores.reshape(len(scores), classes)


def subject_of(name: str, own: UserModels, platform: str | None = None) -> Subject:
    """The model of that name, a user's, else one that is shipped, with the limits that hold on a SoC.

    ``platform`` is the toolkit's name of it; None: no SoC's own limits. ModelError: there is no such model.
    """
    user = own.get(name)
    return _shipped(models.load(name)) if user is None else _of_user(user, platform)


def _shipped(model: models.Model) -> Subject:
    declared = DECLARED.get(model.name)
    if declared is None:
        raise ModelError(
            f"model {model.name!r} has no declared tolerances, so nothing can be held against it"
        )
    # A probe's own calibration data: others would measure clipping.
    samples = Samples((model.calibration,))
    if declared.top1_drop_at_most is not None:
        labelled = models.load_labelled(model.name)
        samples = Samples((labelled.inputs,), labelled.labels)
    return Subject(
        model.name,
        model,
        samples,
        declared.against_float,
        declared.top1_drop_at_most,
        None,
        lambda chosen: (run_onnx(model.float_onnx, chosen.inputs[0]), "ONNX Runtime, float32"),
    )


def _of_user(model: UserModel, platform: str | None) -> Subject:
    table = model.table if platform is None else model.table.on(platform)
    model.require_source()
    samples = model.samples
    if samples is None:
        pytest.skip(
            f"{table_of(model.name)} names no arrays to feed it with: give labelled, or calibration as .npz "
            "or .npy"
        )
    return Subject(
        model.name,
        model,
        samples,
        tuple(_tolerance(entry) for entry in table.tolerances),
        table.top1_drop,
        table.float_top1,
        lambda chosen: model.float_outputs(chosen.inputs),
    )


def _tolerance(entry: ToleranceTable) -> Tolerance:
    def declared(value: float | None, otherwise: float) -> float:
        return otherwise if value is None else value

    return Tolerance(
        declared(entry.cosine, UNJUDGED.cosine_at_least),
        declared(entry.sqnr_db, UNJUDGED.sqnr_db_at_least),
        declared(entry.max_error, UNJUDGED.max_error_at_most),
        declared(entry.bias, UNJUDGED.bias_at_most),
    )
