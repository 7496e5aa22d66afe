"""From a model to an .rknn file, or to the outputs of the toolkit's simulator."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import HarnessError, ModelError, ToolkitError
from pytest_rknpu.toolchain.cache import failed_log, fetch
from pytest_rknpu.toolchain.options import CompileOptions, content_key
from pytest_rknpu.toolchain.process import LOG, run_child
from pytest_rknpu.toolchain.progress import told_if_slow
from pytest_rknpu.toolchain.rknn_file import read_header
from pytest_rknpu.toolchain.source import ModelSource, require_loader, source_of
from pytest_rknpu.toolchain.status import require_toolkit

DEADLINE_S = 600.0
_RKNN, _FUSED, _OUTPUTS = "model.rknn", "fused.onnx", "outputs.npz"
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
        request = {**build_request(folder, source, options), "task": "compile", "rknn": str(folder / _RKNN)}
        subject = f"RKNN-Toolkit2 {version}, compiling for {options.target_platform},"
        with told_if_slow(f"compiling a model of {size_kb:.0f} KB for {options.target_platform}"):
            run_child(request, folder, subject, end - time.monotonic(), failed_log(key))
        return _kept(folder, options)

    entry, cached = fetch(key, make, deadline_s)
    path, fused = entry / _RKNN, entry / _FUSED
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Compiled(path, digest, entry / LOG, fused if fused.exists() else None, version, cached)


def simulate(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[Any]],
    *,
    deadline_s: float = DEADLINE_S,
) -> list[NDArray[np.float32]]:
    """Builds the model and runs every sample on the simulator, all in one child process.

    Each of ``inputs`` is one sample of the model's only input with its batch dimension, (1, C, H, W); all are
    converted to float32. Returns one float32 array (N, ...) per output. Results are not cached: a stored
    result would call itself a simulator's although no simulator ran.

    HarnessError: no input, or inputs of several shapes. Other errors as ``compile_model``.
    """
    shapes = {np.shape(sample) for sample in inputs}
    if len(shapes) != 1:
        raise HarnessError(f"the simulator takes samples of one shape, at least one; got {sorted(shapes)}")
    return simulate_inputs(model, options, [np.stack(inputs)], deadline_s=deadline_s)


def simulate_inputs(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[Any]],
    *,
    deadline_s: float = DEADLINE_S,
) -> list[NDArray[np.float32]]:
    """As ``simulate``, for any number of inputs: an array (N, 1, ...) of each, in the graph's layout."""
    source, version = source_of(model), require_toolkit()
    require_loader(source.loader)
    key = content_key(source.identity, options, version)
    subject = f"RKNN-Toolkit2 {version}, simulating {options.target_platform},"
    end = time.monotonic() + deadline_s
    outputs: list[NDArray[np.float32]] = []

    def run(folder: Path, also: Mapping[str, str]) -> None:
        request = {
            **build_request(folder, source, options),
            **arrays_request(folder, inputs),
            "task": "simulate",
            **also,
        }
        run_child(request, folder, subject, end - time.monotonic(), failed_log(f"simulate-{key}"))
        outputs.extend(read_outputs(folder))

    def make(folder: Path) -> Mapping[str, Path]:
        run(folder, {"rknn": str(folder / _RKNN)})
        return _kept(folder, options)

    # The simulator runs only what it has just built. A model that nobody has compiled yet is kept on the way.
    fetch(key, make, deadline_s)
    if not outputs:
        with tempfile.TemporaryDirectory(prefix="rknpu-simulate-") as name:
            run(Path(name), {})
    return outputs


def _kept(folder: Path, options: CompileOptions) -> Mapping[str, Path]:
    """What the cache keeps of a build in ``folder``, by the names of its entry."""
    _check_platform(folder / _RKNN, options.target_platform)
    passes = sorted(folder.glob(_PASSES))
    return {_RKNN: folder / _RKNN, LOG: folder / LOG, **({_FUSED: passes[-1]} if passes else {})}


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
    lines = _written_samples(folder, options) or [
        " ".join(str(file) for file in files) for files in options.calibration_files
    ]
    if lines:
        (folder / "dataset.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        build = {"do_quantization": True, "dataset": str(folder / "dataset.txt")}
    return {
        "load": source.written_to(folder),
        "layout": source.layout,
        "config": options.config_keywords(),
        "build": build,
    }


def _written_samples(folder: Path, options: CompileOptions) -> list[str]:
    """Writes the calibration arrays; returns the lines of the data set, a file per input."""
    lines = []
    for number, sample in enumerate(zip(*options.calibration_arrays, strict=True)):
        names = [f"sample{number}_{index}.npy" for index in range(len(sample))]
        for name, array in zip(names, sample, strict=True):
            np.save(folder / name, np.asarray(array, dtype=np.float32)[None])
        lines.append(" ".join(names))
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
