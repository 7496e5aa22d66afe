"""From a model to an .rknn file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ModelError, ToolkitError
from pytest_rknpu.toolchain.cache import failed_log, fetch
from pytest_rknpu.toolchain.calibration import write_samples
from pytest_rknpu.toolchain.options import CompileOptions, content_key
from pytest_rknpu.toolchain.process import LOG, run_child
from pytest_rknpu.toolchain.progress import told_if_slow
from pytest_rknpu.toolchain.rknn_file import read_header
from pytest_rknpu.toolchain.source import ModelSource, require_loader, source_of
from pytest_rknpu.toolchain.status import require_toolkit

DEADLINE_S = 600.0
RKNN_FILE = "model.rknn"
_FUSED, _OUTPUTS = "fused.onnx", "outputs.npz"
#: Names that the toolkit takes for another platform's.
_ALIASES = {"rk3588s": "rk3588"}
#: A verbose build writes the graph into its working directory after each numbered pass that changed it; the
#: last one (check3_fuse_ops.onnx where anything was fused, else an earlier one) is what gets compiled.
_PASSES = "check[0-9]_*.onnx"


@dataclass(frozen=True)
class Compiled:
    """A compiled model. ``log`` is the toolkit's verbose build log, ``fused_graph`` the ONNX graph it refers
    to (None where the toolkit wrote none), ``cached`` whether this call found it built already."""

    path: Path
    sha256: str
    log: Path
    fused_graph: Path | None
    toolkit_version: str
    cached: bool


def compile_model(
    model: bytes | Path | ModelSource, options: CompileOptions, *, deadline_s: float = DEADLINE_S
) -> Compiled:
    """Compiles ``model`` (ONNX, or how to load it) for ``options.target_platform``; the same inputs once.

    ModelError: the ONNX model is missing, truncated or not valid. ToolkitError: the toolkit is missing,
    refused the model, died, or did not end by the deadline. ConfigurationError: the cache cannot be written.
    """
    source, version = source_of(model), require_toolkit()
    require_loader(source.loader)
    key = content_key(source.identity, options, version)
    end = time.monotonic() + deadline_s
    size_kb = sum(len(content) for _, content in source.files.values()) / 1024

    def make(folder: Path) -> Mapping[str, Path]:
        request = {
            **build_request(folder, source, options),
            "task": "compile",
            "rknn": str(folder / RKNN_FILE),
        }
        subject = f"RKNN-Toolkit2 {version}, compiling for {options.target_platform},"
        with told_if_slow(f"compiling a model of {size_kb:.0f} KB for {options.target_platform}"):
            run_child(request, folder, subject, end - time.monotonic(), failed_log(key))
        return kept_of_build(folder, options)

    entry, cached = fetch(key, make, deadline_s)
    path, fused = entry / RKNN_FILE, entry / _FUSED
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Compiled(path, digest, entry / LOG, fused if fused.exists() else None, version, cached)


def kept_of_build(folder: Path, options: CompileOptions) -> Mapping[str, Path]:
    """What the cache keeps of a build in ``folder``, by the names of its entry."""
    _check_platform(folder / RKNN_FILE, options.target_platform)
    passes = sorted(folder.glob(_PASSES))
    return {RKNN_FILE: folder / RKNN_FILE, LOG: folder / LOG, **({_FUSED: passes[-1]} if passes else {})}


def arrays_request(folder: Path, inputs: Sequence[NDArray[Any]]) -> dict[str, str]:
    """Writes the inputs, an array (N, 1, ...) of each, and says where the outputs go."""
    arrays = {f"input{number:03}": array.astype(np.float32) for number, array in enumerate(inputs)}
    np.savez(folder / "inputs.npz", **arrays)
    return {"inputs": str(folder / "inputs.npz"), "outputs": str(folder / _OUTPUTS)}


def read_outputs(folder: Path) -> list[NDArray[np.float32]]:
    """The outputs that the worker left, each (N, ...)."""
    with np.load(folder / _OUTPUTS, allow_pickle=False) as archive:
        return [archive[output].astype(np.float32) for output in archive.files]


def build_request(folder: Path, source: ModelSource, options: CompileOptions) -> dict[str, Any]:
    """Writes model and calibration data into ``folder`` and says how to build from them."""
    build: dict[str, Any] = {"do_quantization": False}
    lines = write_samples(folder, options.calibration_arrays) or _listed_files(folder, options)
    if lines:
        (folder / "dataset.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        build = {"do_quantization": True, "dataset": str(folder / "dataset.txt")}
    return {
        "load": source.written_to(folder),
        "layout": source.layout,
        "config": options.config_keywords(),
        "build": build,
    }


def _listed_files(folder: Path, options: CompileOptions) -> list[str]:
    """The lines of the data set, a file per input. The toolkit splits them at blanks: a path that has some is
    given by a link."""
    lines = []
    for number, files in enumerate(options.calibration_files):
        words = [str(file) for file in files]
        for index, word in enumerate(words):
            if word.split() != [word]:
                link = folder / f"listed{number}_{index}{files[index].suffix}"
                link.symlink_to(files[index].absolute())
                words[index] = link.name
        lines.append(" ".join(words))
    return lines


def _check_platform(path: Path, platform: str) -> None:
    """What the toolkit wrote must be a model for the SoC that was asked for."""
    try:
        header = read_header(path.read_bytes())
    except (OSError, ModelError) as error:
        raise ToolkitError(f"RKNN-Toolkit2 reported success but wrote no readable model: {error}") from error
    wanted = platform.lower()
    if _ALIASES.get(wanted, wanted) not in header.target_platforms:
        raise ToolkitError(
            f"RKNN-Toolkit2 was asked for {platform} but wrote a model "
            f"for {', '.join(header.target_platforms)}"
        )
