"""Inference with a user's model on the boards that are not a C runtime: the simulator, and connected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_rknpu.models.user_data import Floats
from pytest_rknpu.session.simulator import Note, simulated
from pytest_rknpu.session.user_faults import users_fault
from pytest_rknpu.session.user_models import UserModel, with_batch

if TYPE_CHECKING:
    from pytest_rknpu.models import Model
    from pytest_rknpu.toolchain.layer_errors import LayerError


Inputs = Floats | Sequence[Floats]


def as_inputs(inputs: Inputs) -> tuple[Floats, ...]:
    """One array for each input, whether one or several were given."""
    return (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)


def simulate_user_model(
    platform: str,
    model: UserModel,
    inputs: Inputs,
    *,
    sparse_infer: bool | None = None,
    note: Note | None = None,
) -> list[Floats]:
    """All samples on RKNN-Toolkit2's simulator of ``platform``; per output an (N, ...) array.

    ``note`` as in ``simulated``. Skips with the proof where nothing can be simulated. UserModelError: the
    toolkit does not take the model.
    """
    source = model.require_source()
    with users_fault(model.name):
        options = model.options(platform, sparse_infer=sparse_infer)
        return simulated(source, options, with_batch(as_inputs(inputs)), note)


def analyse_user_model(platform: str, model: UserModel, sample: Sequence[Floats]) -> tuple[LayerError, ...]:
    """``accuracy_analysis`` of one sample, (1, ...) for each input, on the simulator: each layer against
    float.

    Skips and raises as ``simulate_user_model``.
    """
    from pytest_rknpu.toolchain.board import analyse_layers

    source = model.require_source()
    with users_fault(model.name):
        return analyse_layers(source, model.options(platform), sample)


def native_inputs(model: Model | UserModel, inputs: Inputs) -> tuple[Floats, ...]:
    """What the native inputs of a C runtime hold: an array (N, C, H, W), or of other dimensions, for each.

    Where bytes are passed through, mean and std are the caller's affair (C API reference, pass_through).
    """
    arrays = as_inputs(inputs)
    if not isinstance(model, UserModel):
        return arrays
    return tuple(
        array.transpose(0, 3, 1, 2) if form.graph_nhwc and array.ndim == 4 else array
        for array, form in zip(model.normalised(arrays), model.forms, strict=True)
    )
