"""The kinds of model files that RKNN-Toolkit2 loads (Toolkit2 API reference, ``load_*``), as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Layout = Literal["nchw", "nhwc"]
Dtype = Literal["w8a8", "w8a16", "w16a16i_dfp", "w4a16", "float16", "prequantised"]


@dataclass(frozen=True)
class Format:
    """How the toolkit takes one kind of file: the method of RKNN, the layout of its graph."""

    name: str
    loader: str
    layout: Layout
    needs: frozenset[str] = frozenset()
    takes_outputs: bool = False


_TORCH = Format("TorchScript", "load_pytorch", "nchw", needs=frozenset({"inputs"}))

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        ".onnx": Format("ONNX", "load_onnx", "nchw", takes_outputs=True),
        ".tflite": Format("TensorFlow Lite", "load_tflite", "nhwc"),
        ".pt": _TORCH,
        ".pth": _TORCH,
        ".torchscript": _TORCH,
        ".pb": Format(
            "TensorFlow", "load_tensorflow", "nhwc", frozenset({"inputs", "outputs"}), takes_outputs=True
        ),
        ".prototxt": Format("Caffe", "load_caffe", "nchw", needs=frozenset({"weights"})),
    }
)
"""By the suffix of ``path``, in lower case."""

QUANTISED_DTYPES = frozenset({"w8a8", "w8a16", "w16a16i_dfp", "w4a16"})
"""What the toolkit quantises to, on calibration data."""
