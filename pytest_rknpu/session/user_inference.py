"""Inference with a user's model on the boards that are not a C runtime: the simulator, and connected ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pytest_rknpu.models.user_data import Floats
from pytest_rknpu.session.user_models import UserModel, with_batch

if TYPE_CHECKING:
    from pytest_rknpu.models import Model


Inputs = Floats | Sequence[Floats]


def as_inputs(inputs: Inputs) -> tuple[Floats, ...]:
    """One array for each input, whether one or several were given."""
    return (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)


def simulate_user_model(
    platform: str, model: UserModel, inputs: Inputs, *, sparse_infer: bool | None = None
) -> list[Floats]:
    """All samples on RKNN-Toolkit2's simulator of ``platform``; per output an (N, ...) array.

    Skips with the proof where there is nothing to simulate. Raises ToolkitError.
    """
    from pytest_rknpu.toolchain import simulate_inputs

    source = model.require_source()
    options = model.options(platform, sparse_infer=sparse_infer)
    return simulate_inputs(source, options, with_batch(as_inputs(inputs)))


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
