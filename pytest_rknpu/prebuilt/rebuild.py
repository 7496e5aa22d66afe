"""Building what is shipped with the toolkit that is installed: .rknn files, and the cycles it predicts."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pytest_rknpu import models
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.prebuilt.predicted import BASELINES
from pytest_rknpu.prebuilt.store import MANIFEST, NEWEST, REBUILD, key_of, path_of
from pytest_rknpu.toolchain import (
    CompileOptions,
    compile_model,
    parse_build_log,
    read_header,
    toolkit_status,
)
from pytest_rknpu.toolchain.cycles import cycles_by_layer

#: What the suites of SYNC, MEM and ERR run, and the classifier.
SUITE_MODELS = ("digits_cnn", "probe_chain", "probe_pointwise", "probe_stride", "probe_wide")
#: VER-06 keeps one small model, whose output is known exactly, of each of these.
STORED_MODEL = "probe_pointwise"
STORED_VERSIONS = ("2.2.0", "2.3.0", "2.3.2", NEWEST)
#: LAT-09 compares with these; 2.2.0 and 2.3.0 predict what 2.3.2 does.
BASELINE_VERSIONS = ("2.3.2", NEWEST)
#: What older toolkits do not know (their config() refuses the name).
UNKNOWN_PLATFORMS: Mapping[str, frozenset[str]] = {
    "2.2.0": frozenset({"rv1126b"}),
    "2.3.0": frozenset({"rv1126b"}),
}


def wanted(version: str) -> Iterator[tuple[str, str]]:
    """(model, platform) of all that is shipped of one toolkit version."""
    names = SUITE_MODELS if version == NEWEST else (STORED_MODEL,)
    yield from (pair for pair in every_pair(version) if pair[0] in names)


def rebuild(folder: Path, *, force: bool = False) -> list[str]:
    """Builds what the installed toolkit version has to provide; returns the keys of what was written.

    A file whose model, calibration data and options are still those of the manifest is kept: no two builds
    have the same bytes. ``force`` builds it all the same. Predicted cycles are always taken anew.

    ConfigurationError: nothing is kept of the installed version. ToolkitError, ModelError as
    ``compile_model``.
    """
    version = toolkit_status().version
    if version not in STORED_VERSIONS:
        raise ConfigurationError(
            f"models are kept of RKNN-Toolkit2 {', '.join(STORED_VERSIONS)}, not of {version}"
        )
    entries = _read(folder / MANIFEST, "entries")

    def make(pair: tuple[str, str]) -> tuple[str, dict[str, Any]] | None:
        key = key_of(*pair, version)
        kept = not force and key in entries and path_of(*pair, version, folder).exists()
        if kept and all(entries[key][name] == value for name, value in _inputs(*pair).items()):
            return None
        return key, _build(*pair, version, folder)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = dict(entry for entry in pool.map(make, wanted(version)) if entry is not None)
        _write(folder / MANIFEST, "entries", {**entries, **built})
        if version in BASELINE_VERSIONS:
            found = list(pool.map(_predicted, *zip(*every_pair(version), strict=True)))
            cycles: dict[str, dict[str, Any]] = {}
            for (name, platform), entry in zip(every_pair(version), found, strict=True):
                cycles.setdefault(platform, {})[name] = entry
            _write(folder / BASELINES, "cycles", {**_read(folder / BASELINES, "cycles"), version: cycles})
    return sorted(built)


def every_pair(version: str) -> list[tuple[str, str]]:
    """(model, platform) of all shipped models and all platforms that a toolkit version knows."""
    platforms = [soc.toolkit_platform for soc in SOCS.values()]
    known = [platform for platform in platforms if platform not in UNKNOWN_PLATFORMS.get(version, ())]
    return [(name, platform) for platform in known for name in models.names()]


def _read(path: Path, key: str) -> dict[str, Any]:
    if not path.exists():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))[key]
    return content


def _write(path: Path, key: str, content: Mapping[str, Any]) -> None:
    text = json.dumps({"rebuild": REBUILD, key: content}, indent=1, sort_keys=True)
    # Lists of numbers on one line.
    text = re.sub(r"\[\s+(-?\d+),\s+(-?\d+),\s+(-?\d+)\s+\]", r"[\1, \2, \3]", text)
    path.write_text(text + "\n", encoding="utf-8")


def _predicted(name: str, platform: str) -> dict[str, Any]:
    """What the installed toolkit predicts of a model, layer by layer."""
    model = models.load(name)
    log = compile_model(model.float_onnx, _options(model, platform)).log
    plan = parse_build_log(log.read_text(encoding="utf-8", errors="replace")).plan
    layers = {layer: [c.ddr, c.npu, c.total] for layer, c in cycles_by_layer(plan).items()}
    return {"onnx_sha256": hashlib.sha256(model.float_onnx).hexdigest(), "layers": layers}


def _options(model: models.Model, platform: str) -> CompileOptions:
    return CompileOptions(target_platform=platform, calibration=model.calibration)


def _inputs(name: str, platform: str) -> dict[str, Any]:
    """What goes into a build, as the manifest tells it."""
    model = models.load(name)
    return {
        "onnx_sha256": hashlib.sha256(model.float_onnx).hexdigest(),
        "calibration_sha256": hashlib.sha256(model.calibration.tobytes()).hexdigest(),
        "options": _options(model, platform).config_keywords(),
    }


def _build(name: str, platform: str, version: str, folder: Path) -> dict[str, Any]:
    model = models.load(name)
    content = compile_model(model.float_onnx, _options(model, platform)).path.read_bytes()
    path = path_of(name, platform, version, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {
        **_inputs(name, platform),
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "format_version": read_header(content).format_version,
    }
