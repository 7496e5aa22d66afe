"""What the data files of a ``[[model]]`` hold: an array for each input, in the layout of the model's graph.

A data set is N samples. Here each input has one float32 array (N, ...) without the graph's leading 1, so that
a row is a sample. What does not fit the model's inputs is a ConfigurationError that names table, key, file
and array.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError

Floats = NDArray[np.float32]
LABELS = "labels"
#: What numpy and zipfile raise at files that are damaged, encrypted, or larger than the memory.
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)


@dataclass(frozen=True)
class InputForm:
    """One input of a graph. ``name`` and ``shape`` are None where nothing tells them.

    ``data_nhwc`` and ``graph_nhwc`` say how four dimensions lie in the data files and in the graph.
    """

    name: str | None
    shape: tuple[int, ...] | None
    data_nhwc: bool = False
    graph_nhwc: bool = False


@dataclass(frozen=True)
class Samples:
    """``inputs`` has an array (N, ...) for each input; ``labels`` is int64 (N,) or None."""

    inputs: tuple[Floats, ...]
    labels: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.inputs[0])

    def first(self, count: int) -> Samples:
        """At most ``count`` samples, from the beginning."""
        labels = None if self.labels is None else self.labels[:count]
        return Samples(tuple(array[:count] for array in self.inputs), labels)


def read_samples(where: str, file: Path, forms: Sequence[InputForm], *, labelled: bool = False) -> Samples:
    """Read an .npz or .npy file. ``where`` names the table and key in errors.

    ConfigurationError: unreadable, an array missing or too many, shapes that do not fit, no labels.
    """
    arrays = _arrays(where, file)
    labels = arrays.pop(LABELS, None) if labelled else None
    if labelled and labels is None:
        raise ConfigurationError(f"{where}: {file} has no array {LABELS!r}, it has {_listed(arrays)}")
    chosen = _by_input(where, file, arrays, forms)
    inputs = tuple(
        _fitted(f"{where}: {file}, array {name!r}", array, form)
        for (name, array), form in zip(chosen, forms, strict=True)
    )
    counts = {len(array) for array in inputs}
    if len(counts) != 1 or counts == {0}:
        raise ConfigurationError(f"{where}: {file} has {' and '.join(map(str, sorted(counts)))} samples")
    _require_varied(f"{where}: {file}", inputs)
    return Samples(inputs, None if labels is None else _labels(where, file, labels, counts.pop()))


def read_listed(where: str, samples: Sequence[Sequence[Path]], forms: Sequence[InputForm]) -> Samples | None:
    """The samples of a calibration list, which lie as the graph has them; None with pictures."""
    if any(file.suffix.lower() != ".npy" for files in samples for file in files):
        return None
    as_graph = [InputForm(form.name, form.shape, form.graph_nhwc, form.graph_nhwc) for form in forms]
    columns = []
    for position, form in enumerate(as_graph):
        rows = [_one_sample(where, files[position], form) for files in samples]
        if len({row.shape for row in rows}) != 1:
            raise ConfigurationError(f"{where}: the samples of input {position} have several shapes")
        columns.append(np.stack(rows))
    _require_varied(where, columns)
    return Samples(tuple(columns))


def _one_sample(where: str, file: Path, form: InputForm) -> Floats:
    arrays = _arrays(where, file)
    if len(arrays) != 1:
        raise ConfigurationError(
            f"{where}: {file} holds {_listed(arrays)}; a list names a file for each array"
        )
    (array,) = arrays.values()
    # As the toolkit has it, with the leading 1; without it too.
    whole = array if form.shape is not None and array.shape == form.shape else array[np.newaxis]
    if form.shape is None and array.ndim and array.shape[0] == 1:
        whole = array
    row: Floats = _fitted(f"{where}: {file}", whole, form)[0]
    return row


def _arrays(where: str, file: Path) -> dict[str, NDArray[Any]]:
    try:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {file.stem: loaded}
        with loaded as archive:
            return {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise ConfigurationError(f"{where}: {file} cannot be read as arrays: {reason}") from None


def _require_varied(where: str, inputs: Sequence[Floats]) -> None:
    """One input of several may be a constant; a data set that is nothing else was saved by mistake."""
    if all(array.size and array.min() == array.max() for array in inputs):
        raise ConfigurationError(
            f"{where}: all elements are {float(inputs[0].flat[0]):g}: nothing can be quantised or compared "
            "on such data; save real samples"
        )


def _by_input(
    where: str, file: Path, arrays: Mapping[str, NDArray[Any]], forms: Sequence[InputForm]
) -> list[tuple[str, NDArray[Any]]]:
    """The array of each input: by its name; the only one, whatever its name, where there is one input."""
    if len(forms) == 1 and len(arrays) == 1:
        return list(arrays.items())
    names = [form.name for form in forms]
    if None not in names and set(names) == set(arrays):
        return [(str(name), arrays[str(name)]) for name in names]
    wanted = _listed([name or "(unnamed)" for name in names])
    raise ConfigurationError(f"{where}: {file} holds {_listed(arrays)}, the model has the inputs {wanted}")


def _fitted(where: str, array: NDArray[Any], form: InputForm) -> Floats:
    """Checked against the input's shape and turned into the graph's layout."""
    if array.dtype.kind not in "fiub":
        raise ConfigurationError(f"{where} holds {array.dtype}, not numbers")
    if form.data_nhwc != form.graph_nhwc and array.ndim == 4:
        array = array.transpose(0, 3, 1, 2) if form.data_nhwc else array.transpose(0, 2, 3, 1)
    if form.shape is not None and array.shape[1:] != form.shape[1:]:
        raise ConfigurationError(
            f"{where} has shape {array.shape}{_turned(form)}, the input takes (N, "
            f"{', '.join(map(str, form.shape[1:]))}){_other_layout(array, form)}"
        )
    with np.errstate(over="ignore"):  # what overflows float32 is told below
        floats = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(floats).all():
        count = int((~np.isfinite(floats)).sum())
        raise ConfigurationError(
            f"{where} has {count} elements that are not finite as float32; leave them out"
        )
    if array.dtype.kind in "iu" and not np.array_equal(floats.astype(np.float64), array.astype(np.float64)):
        raise ConfigurationError(
            f"{where} holds whole numbers beyond 2^24, which float32 cannot hold exactly"
        )
    return floats


def _turned(form: InputForm) -> str:
    return " in the graph's layout" if form.data_nhwc != form.graph_nhwc else ""


def _other_layout(array: NDArray[Any], form: InputForm) -> str:
    """What to do: the other layout where that would fit."""
    turned = array.transpose(0, 3, 1, 2) if array.ndim == 4 and not form.graph_nhwc else None
    if form.shape is not None and turned is not None and turned.shape[1:] == form.shape[1:]:
        return ': say layout = "nhwc" in key "inputs"'
    return ': key "inputs" says shape and layout'


def _labels(where: str, file: Path, labels: NDArray[Any], count: int) -> NDArray[np.int64]:
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise ConfigurationError(
            f"{where}: {file}, array {LABELS!r} is {labels.dtype} of shape {labels.shape}; "
            f"it has to be whole numbers of shape ({count},), one for each sample"
        )
    if labels.min() < 0 or labels.max() > np.iinfo(np.int32).max:
        raise ConfigurationError(
            f"{where}: {file}, array {LABELS!r} reaches from {labels.min()} to {labels.max()}; classes are "
            "counted from 0"
        )
    return labels.astype(np.int64)


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(repr(name) for name in names) or "nothing"
