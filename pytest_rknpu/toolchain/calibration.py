"""Calibration samples as the toolkit takes them: a .npy file for each, named by the lines of a data set.

Many builds share one calibration set, for several SoCs and options, and writing its files costs as much as a
small build. So they are kept in the cache, where each use checks them byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.toolchain.cache import fetch

Floats = NDArray[np.float32]

_DEADLINE_S = 60.0
#: Larger sets would fill the cache, and their builds take so long that it matters little.
_LARGEST_KEPT = 1 << 24
_LINK = "calibration"


def write_samples(folder: Path, arrays: Sequence[Floats]) -> list[str]:
    """Lines of a data set for a job in ``folder``: the files of each sample, one for each input.

    ``arrays`` hold (N, ...) for each input. Names are relative to the folder, as the toolkit splits lines at
    spaces.
    """
    if not arrays or sum(array.nbytes for array in arrays) > _LARGEST_KEPT:
        return _lines(list(_write(folder, arrays)), len(arrays))
    try:
        entry, _ = fetch(_key(arrays), lambda workshop: _write(workshop, arrays), _DEADLINE_S)
    except ConfigurationError:
        # A cache that takes no more: the job may need nothing else of it.
        return _lines(list(_write(folder, arrays)), len(arrays))
    (folder / _LINK).symlink_to(entry, target_is_directory=True)
    return _lines([f"{_LINK}/{name}" for name in _names(arrays)], len(arrays))


def _names(arrays: Sequence[Floats]) -> list[str]:
    """By sample, then by input."""
    return [f"sample{number}_{index}.npy" for number in range(len(arrays[0])) for index in range(len(arrays))]


def _write(folder: Path, arrays: Sequence[Floats]) -> Mapping[str, Path]:
    """The files by their names; each sample has the batch dimension 1."""
    rows = [row for sample in zip(*arrays, strict=True) for row in sample]
    files = {name: folder / name for name in _names(arrays)} if arrays else {}
    for path, row in zip(files.values(), rows, strict=True):
        np.save(path, np.asarray(row, dtype=np.float32)[None])
    return files


def _lines(names: Sequence[str], inputs: int) -> list[str]:
    return [" ".join(names[start : start + inputs]) for start in range(0, len(names), inputs or 1)]


def _key(arrays: Sequence[Floats]) -> str:
    parts = [
        (str(a.dtype), a.shape, hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()) for a in arrays
    ]
    return hashlib.sha256(json.dumps(["calibration", *parts]).encode()).hexdigest()
