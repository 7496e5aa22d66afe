"""What RKNN-Toolkit2 is asked to do with a model, and the key under which the result is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    H, W); with it the model is quantised, without it it stays float16 (which RV1103 and RV1106 refuse).
    ``mean_values`` and ``std_values`` hold one number per channel; calibration data are then what comes
    before that normalisation. ``config`` passes any other keyword of ``RKNN.config`` on, as plain JSON
    values.
    """

    target_platform: str
    calibration: NDArray[np.float32] | None = None
    quantized_dtype: str = "w8a8"
    quantized_algorithm: str = "normal"
    quantized_method: str = "channel"
    optimization_level: int = 3
    sparse_infer: bool = False
    mean_values: tuple[float, ...] | None = None
    std_values: tuple[float, ...] | None = None
    config: Mapping[str, JsonValue] = field(default_factory=dict)

    def config_keywords(self) -> dict[str, JsonValue]:
        """The keywords for ``RKNN.config``; what is left at its default is not passed."""
        keywords: dict[str, JsonValue] = {
            "target_platform": self.target_platform,
            "optimization_level": self.optimization_level,
            **self.config,
        }
        if self.calibration is not None:
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
    data = options.calibration
    parts = {
        "recipe": RECIPE,
        "onnx": hashlib.sha256(onnx).hexdigest(),
        "config": options.config_keywords(),
        "calibration": None if data is None else [str(data.dtype), list(data.shape), _digest(data)],
        "toolkit": toolkit_version,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _digest(data: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(data).tobytes()).hexdigest()
