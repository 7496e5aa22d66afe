"""What RKNN-Toolkit2 is asked to do with a model, and the key under which the result is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Goes into every key: raise it when the worker asks the toolkit in another way.
RECIPE = 1

JsonValue = str | int | float | bool | None | list[Any] | dict[str, Any]


@dataclass(frozen=True, eq=False)
class CompileOptions:
    """Names are those of ``RKNN.config`` and ``RKNN.build`` (Toolkit2 API reference).

    ``calibration`` is float32 (N, ...), one sample of the model's only input per row and in its layout (N, C,
    H, W), or a tuple of such arrays, one for each input; with it the model is quantised, without it it stays
    float16 (which RV1103 and RV1106 refuse). ``calibration_files`` are files in its stead, .npy or pictures,
    a tuple for each sample with one for each input. ``mean_values`` and ``std_values`` hold one number per
    channel; calibration data are then what comes before that normalisation. ``config`` passes any other
    keyword of ``RKNN.config`` on, as plain JSON values.
    """

    target_platform: str
    calibration: NDArray[np.float32] | tuple[NDArray[np.float32], ...] | None = None
    calibration_files: tuple[tuple[Path, ...], ...] = ()
    quantized_dtype: str = "w8a8"
    quantized_algorithm: str = "normal"
    quantized_method: str = "channel"
    optimization_level: int = 3
    sparse_infer: bool = False
    mean_values: tuple[float, ...] | None = None
    std_values: tuple[float, ...] | None = None
    config: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def calibration_arrays(self) -> tuple[NDArray[np.float32], ...]:
        """One array (N, ...) for each input; empty where there are none."""
        if self.calibration is None:
            return ()
        return self.calibration if isinstance(self.calibration, tuple) else (self.calibration,)

    @property
    def quantises(self) -> bool:
        """Whether the toolkit is asked to quantise."""
        return bool(self.calibration_arrays or self.calibration_files)

    def config_keywords(self) -> dict[str, JsonValue]:
        """The keywords for ``RKNN.config``; what is left at its default is not passed."""
        keywords: dict[str, JsonValue] = {
            "target_platform": self.target_platform,
            "optimization_level": self.optimization_level,
            **self.config,
        }
        if self.quantises:
            keywords["quantized_dtype"] = self.quantized_dtype
            keywords["quantized_algorithm"] = self.quantized_algorithm
            keywords["quantized_method"] = self.quantized_method
        if self.sparse_infer:
            keywords["sparse_infer"] = True
        if self.mean_values is not None:
            keywords["mean_values"] = [list(self.mean_values)]
        if self.std_values is not None:
            keywords["std_values"] = [list(self.std_values)]
        return keywords


def content_key(onnx: bytes, options: CompileOptions, toolkit_version: str) -> str:
    """sha256 over all that goes in. What comes out will not do: two builds of one model differ in bytes."""
    parts: dict[str, Any] = {
        "recipe": RECIPE,
        "onnx": hashlib.sha256(onnx).hexdigest(),
        "config": options.config_keywords(),
        "calibration": _calibration_key(options),
        "toolkit": toolkit_version,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _calibration_key(options: CompileOptions) -> JsonValue:
    """The content of what the model is quantised on; None where it is not."""
    if options.calibration_files:
        return [
            [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
            for files in options.calibration_files
        ]
    arrays = [[str(data.dtype), list(data.shape), _digest(data)] for data in options.calibration_arrays]
    return arrays[0] if len(arrays) == 1 else arrays or None


def _digest(data: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()
