"""Which keys of a ``[[model]]`` table go together. The first part of each finding is the key it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_rknpu.inventory.model_formats import FORMATS, QUANTISED_DTYPES
from pytest_rknpu.inventory.wording import quoted

if TYPE_CHECKING:
    from pytest_rknpu.inventory.model_table import LimitsTable, ModelTable

_ONLY_WITH_PATH = (
    "weights",
    "outputs",
    "mean",
    "std",
    "channel_order",
    "calibration",
    "labelled",
    "dtype",
    "sparse",
    "tolerances",
    "top1_drop",
    "float_top1",
    "cpu_operators",
    "per_soc",
    "dense",
    "pruning_loss",
)
_SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "path": tuple(FORMATS),
    "weights": (".caffemodel",),
    "calibration": (".npz", ".npy", ".txt"),
    "labelled": (".npz",),
}


def misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    """(key, what is wrong) for whatever does not go together."""
    if table.path is None and not table.rknn:
        yield "path", "missing; a model needs path, or rknn with a file per SoC"
    yield from _wrong_suffixes(table)
    if table.path is None:
        given = [key for key in _ONLY_WITH_PATH if key in table.model_fields_set]
        yield from ((key, "only with path: nothing is built from a ready .rknn file") for key in given)
        return
    yield from _format_misfits(table)
    yield from _normalisation_misfits(table)
    yield from _quantisation_misfits(table)
    yield from _oracle_misfits(table)


def _wrong_suffixes(table: ModelTable) -> Iterator[tuple[str, str]]:
    for key, suffixes in _SUFFIXES.items():
        file = getattr(table, key)
        if file is not None and PurePosixPath(file).suffix.lower() not in suffixes:
            yield key, f"{quoted(file)} has none of the suffixes {', '.join(suffixes)}"


def _format_misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    form = table.format
    if form is None:
        return
    for key in sorted(form.needs):
        if not getattr(table, key):
            yield key, f"missing; a {form.name} model needs it"
    if table.weights is not None and "weights" not in form.needs:
        yield "weights", f"only for Caffe, but {quoted(table.path)} is {form.name}"
    if table.outputs and not form.takes_outputs:
        yield "outputs", f"the toolkit cuts ONNX and TensorFlow graphs only, not {form.name}"
    if "inputs" in form.needs and form.takes_outputs and any(entry.name is None for entry in table.inputs):
        yield "inputs", f"a {form.name} model needs the name of each input"
    names = [entry.name for entry in table.inputs if entry.name is not None]
    if len(set(names)) < len(names) or len(set(table.outputs)) < len(table.outputs):
        yield "inputs" if len(set(names)) < len(names) else "outputs", "a name occurs twice"


def _normalisation_misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    for key, other in (("mean", "std"), ("std", "mean")):
        if getattr(table, key) and not getattr(table, other):
            yield other, f"missing; {key} goes with it"
    if table.mean and table.std and len(table.mean) != len(table.std):
        yield "std", f"has {len(table.std)} numbers, mean has {len(table.mean)}"
    if 0.0 in table.std:
        yield "std", "holds a 0, and the data are divided by it"
    if table.mean and len(table.inputs) > 1:
        yield "mean", "only for models with one input; normalise the data sets instead"
    if table.mean and table.inputs and len(table.inputs[0].shape) == 4:
        axis = 1 if table.format is None or table.format.layout == "nchw" else 3
        channels = table.inputs[0].shape[axis]
        if len(table.mean) != channels:
            yield "mean", f"has {len(table.mean)} numbers, the input has {channels} channels"


def _quantisation_misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    dtype = table.built_dtype
    if dtype in QUANTISED_DTYPES and table.calibration is None:
        yield "calibration", f"missing; dtype {quoted(dtype)} is quantised on it"
    if table.sparse is not None and dtype not in QUANTISED_DTYPES:
        yield "sparse", f"only for quantised models (guide 4.1.7), but dtype is {quoted(dtype)}"
    pictures = table.calibration is not None and table.calibration.lower().endswith(".txt")
    if table.channel_order is not None and not pictures:
        yield (
            "channel_order",
            "only for pictures that a calibration list (.txt) names; arrays are taken as they are",
        )


def _oracle_misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    for key in ("float_top1", "pruning_loss"):
        if getattr(table, key) is not None and table.labelled is None:
            yield key, "only with labelled: top-1 is counted on labels"
    yield from _limit_misfits(table, table)
    for soc, limits in table.per_soc.items():
        yield from (("per_soc", f"{soc}: {key} {words}") for key, words in _limit_misfits(table, limits))
    yield from _pruning_misfits(table)


def _limit_misfits(table: ModelTable, limits: ModelTable | LimitsTable) -> Iterator[tuple[str, str]]:
    if limits.top1_drop is not None and table.labelled is None:
        yield "top1_drop", "only with labelled: top-1 is counted on labels"
    if limits.tolerances and table.labelled is None and table.calibration is None:
        yield "tolerances", "only with labelled or calibration: nothing could be compared"
    if table.outputs and len(limits.tolerances) not in (0, 1, len(table.outputs)):
        count = f"{len(limits.tolerances)} entries for {len(table.outputs)} outputs"
        yield "tolerances", f"has {count}; give one for all of them, or one for each"


def _pruning_misfits(table: ModelTable) -> Iterator[tuple[str, str]]:
    if table.dense is not None and table.sparse is None:
        yield "sparse", "missing; dense is the model that this one was pruned from, and sparse says how"
    if table.dense is not None and table.labelled is None:
        yield "dense", "only with labelled: both models are compared on labels"
    for key, other in (("dense", "pruning_loss"), ("pruning_loss", "dense")):
        if getattr(table, key) is not None and getattr(table, other) is None:
            yield other, f"missing; {key} goes with it"
    if table.dense is not None and table.dense == table.name:
        yield "dense", "is the model itself"
