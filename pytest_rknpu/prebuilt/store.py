"""Reading the prebuilt models: a file is what the manifest beside it says, or it is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_rknpu.errors import ModelError

FOLDER = Path(__file__).parent
MANIFEST = "manifest.json"
REBUILD = "python -m pytest_rknpu.prebuilt"
#: The toolkit version of the models that suites run where no toolkit is installed.
NEWEST = "2.5.0"


@dataclass(frozen=True)
class Prebuilt:
    """A compiled model and where it comes from. ``options`` are the keywords that ``RKNN.config`` got.

    ``onnx_sha256`` and ``calibration_sha256`` are of the float model and of the float32 calibration data.
    """

    model: str
    platform: str
    toolkit_version: str
    content: bytes
    sha256: str
    options: Mapping[str, Any]
    onnx_sha256: str
    calibration_sha256: str


def load(model: str, platform: str, version: str = NEWEST, folder: Path = FOLDER) -> Prebuilt:
    """The prebuilt ``model`` for a toolkit platform ("rk3588").

    ModelError: there is none of that version, or its file is missing or not that of the manifest.
    """
    entry = _entries(folder).get(key_of(model, platform, version))
    if entry is None:
        there = ", ".join(versions_of(model, platform, folder)) or "none"
        raise ModelError(f"no prebuilt {model} by RKNN-Toolkit2 {version} for {platform}; versions: {there}")
    path = path_of(model, platform, version, folder)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the prebuilt {path} ({error.strerror}): {_REMEDY}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != entry["sha256"]:
        raise ModelError(f"{path} is not the file of the manifest (sha256 {found[:16]}...): {_REMEDY}")
    return Prebuilt(
        model,
        platform,
        version,
        content,
        found,
        MappingProxyType(entry["options"]),
        entry["onnx_sha256"],
        entry["calibration_sha256"],
    )


_REMEDY = f"reinstall pytest-rknpu, or rebuild it: {REBUILD}"


def versions_of(model: str, platform: str, folder: Path = FOLDER) -> tuple[str, ...]:
    """The toolkit versions of which ``model`` is there for ``platform``, oldest first."""
    keys = (key.split("/") for key in _entries(folder))
    versions = [version for version, soc, name in keys if (soc, name) == (platform, model)]
    return tuple(sorted(versions, key=lambda version: [int(part) for part in version.split(".")]))


def key_of(model: str, platform: str, version: str) -> str:
    """The key of an entry in the manifest."""
    return f"{version}/{platform}/{model}"


def path_of(model: str, platform: str, version: str, folder: Path) -> Path:
    """Where the file lies."""
    return folder / "files" / version / platform / f"{model}.rknn"


@lru_cache(maxsize=8)
def _entries(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST
    try:
        entries: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["entries"]
    except FileNotFoundError:
        raise ModelError(f"the list of prebuilt models {path} is missing: reinstall pytest-rknpu") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the list of prebuilt models {path} is unreadable ({error}): {_REMEDY}") from error
    return MappingProxyType(entries)
