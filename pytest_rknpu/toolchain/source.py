"""A model as RKNN-Toolkit2 loads it: which method of ``RKNN``, with which files and keywords."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.onnx_file import read_onnx
from pytest_rknpu.toolchain.options import JsonValue


@dataclass(frozen=True)
class ModelSource:
    """``files`` are by keyword of the method: (name of the file, content). ``layout`` is the graph's own, of
    inputs with four dimensions."""

    loader: str
    files: Mapping[str, tuple[str, bytes]]
    keywords: Mapping[str, JsonValue] = field(default_factory=dict)
    layout: str = "nchw"

    @property
    def identity(self) -> bytes:
        """What goes into the key of the cache: an ONNX file stands for itself."""
        if self.loader == "load_onnx" and not self.keywords:
            return self.files["model"][1]
        parts = {
            "loader": self.loader,
            "files": {key: hashlib.sha256(content).hexdigest() for key, (_, content) in self.files.items()},
            "keywords": dict(self.keywords),
        }
        return json.dumps(parts, sort_keys=True).encode()

    def written_to(self, folder: Path) -> dict[str, Any]:
        """Write the files into ``folder``; returns the worker's ``load`` (method and keywords)."""
        paths = {}
        for keyword, (name, content) in self.files.items():
            (folder / name).write_bytes(content)
            paths[keyword] = str(folder / name)
        return {"method": self.loader, "keywords": {**paths, **self.keywords}}


def source_of(model: bytes | Path | ModelSource) -> ModelSource:
    """The source of an ONNX model given as bytes or as a file, or the source itself.

    ModelError as for ``read_onnx``.
    """
    if isinstance(model, ModelSource):
        return model
    return ModelSource("load_onnx", {"model": ("model.onnx", read_onnx(model))})


@dataclass(frozen=True)
class _Companion:
    """A package that the toolkit imports to load a format, and does not install itself."""

    module: str
    formats: str
    install: str


_TENSORFLOW = "pip install 'tensorflow>=1.12,<=2.14'"  # the versions that the toolkit itself asks for
_COMPANIONS: Mapping[str, _Companion] = MappingProxyType(
    {
        "load_tflite": _Companion("tensorflow", "TensorFlow Lite models", _TENSORFLOW),
        "load_tensorflow": _Companion("tensorflow", "TensorFlow graphs", _TENSORFLOW),
        "load_pytorch": _Companion("torch", "TorchScript models", "pip install torch"),
    }
)


def missing_companion(loader: str) -> str | None:
    """That the package is missing by which the toolkit loads this format, and what to do; or None."""
    companion = _COMPANIONS.get(loader)
    if companion is None or util.find_spec(companion.module) is not None:
        return None
    return (
        f"RKNN-Toolkit2 loads {companion.formats} by {companion.module}, which is not installed: "
        f"{companion.install}, or convert the model to ONNX"
    )


def require_loader(loader: str) -> None:
    """ToolkitError where the package is missing by which the toolkit loads this format."""
    reason = missing_companion(loader)
    if reason is not None:
        raise ToolkitError(reason)
