"""The predicted cycles of the shipped models by other toolkit versions: LAT-09's baselines, as data.

``cycles.json`` holds, by toolkit version, platform and model, the cycles (DDR, NPU, total) of each layer from
that version's build log, and the hash of the model that it compiled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_rknpu.errors import ModelError
from pytest_rknpu.prebuilt.store import FOLDER
from pytest_rknpu.toolchain.log_rows import Cycles

BASELINES = "cycles.json"


@dataclass(frozen=True)
class Predicted:
    """What RKNN-Toolkit2 ``toolkit_version`` predicted of a model. ``layers`` are by full name."""

    toolkit_version: str
    onnx_sha256: str
    layers: Mapping[str, Cycles]


def baseline_for(model: str, platform: str, installed: str, folder: Path = FOLDER) -> Predicted:
    """The baseline of the newest version that is older than ``installed``, else of the oldest newer one.

    ModelError: no other version's is stored for this model and platform.
    """
    stored = _stored(folder)
    there = [v for v in stored if model in stored[v].get(platform, {}) and release(v) != release(installed)]
    older = [version for version in there if release(version) < release(installed)]
    if not there:
        raise ModelError(
            f"no predicted cycles of another toolkit version are stored for {model} on {platform}"
        )
    version = max(older, key=release) if older else min(there, key=release)
    entry = stored[version][platform][model]
    layers = {name: Cycles(*cycles) for name, cycles in entry["layers"].items()}
    return Predicted(version, entry["onnx_sha256"], layers)


def release(version: str) -> tuple[int, ...]:
    """ "2.3.2" or "2.3.2+429f97ae" as numbers."""
    return tuple(int(part) for part in version.split("+")[0].split(".") if part.isdigit())


@lru_cache(maxsize=4)
def _stored(folder: Path) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    path = folder / BASELINES
    try:
        stored: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))["cycles"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"the baselines {path} cannot be read ({error}): reinstall pytest-rknpu") from error
    return stored
