"""From a model to the outputs of the toolkit's simulator; and those that it gave before, named as such."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ConfigurationError, HarnessError
from pytest_rknpu.toolchain.cache import failed_log, fetch, find
from pytest_rknpu.toolchain.compile import (
    DEADLINE_S,
    RKNN_FILE,
    arrays_request,
    build_request,
    kept_of_build,
    read_outputs,
)
from pytest_rknpu.toolchain.disk import temporary_folder
from pytest_rknpu.toolchain.options import CompileOptions, content_key
from pytest_rknpu.toolchain.process import run_child
from pytest_rknpu.toolchain.progress import told_if_slow
from pytest_rknpu.toolchain.source import ModelSource, require_loader, source_of
from pytest_rknpu.toolchain.status import require_toolkit

Outputs = list[NDArray[np.float32]]

_ARRAYS, _ORIGIN = "outputs.npz", "origin.json"
#: Larger outputs are not stored: one detector on a few hundred pictures would fill a cache.
_LARGEST_STORED = 1 << 26
#: What computes beside the toolkit, whose versions may show in the last bits.
_LIBRARIES = ("numpy", "onnx", "onnxruntime", "torch")
_OF_THE_PROCESSOR = ("model name", "flags", "Features", "CPU implementer", "CPU part")
#: Keys of what this process has simulated, or was given, already.
_asked: set[str] = set()


@dataclass(frozen=True)
class Simulation:
    """One float32 array (N, ...) per output. ``stored`` is empty where the simulator has just run, else says
    in a sentence for the record where the outputs come from."""

    outputs: Outputs
    stored: str = ""


def simulate(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[Any]],
    *,
    deadline_s: float = DEADLINE_S,
) -> Outputs:
    """Builds the model and runs every sample on the simulator, all in one child process.

    Each of ``inputs`` is one sample of the model's only input with its batch dimension, (1, C, H, W); all are
    converted to float32. Returns one float32 array (N, ...) per output. The simulator really runs; where
    earlier outputs will do there is ``simulation_of``.

    HarnessError: no input, or inputs of several shapes. Other errors as ``compile_model``.
    """
    return simulate_inputs(model, options, [stacked(inputs)], deadline_s=deadline_s)


def stacked(samples: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Samples of one shape as one array. HarnessError: there is none, or they have several shapes."""
    shapes = {np.shape(sample) for sample in samples}
    if len(shapes) != 1:
        raise HarnessError(f"the simulator takes samples of one shape, at least one; got {sorted(shapes)}")
    return np.stack(samples)


def simulate_inputs(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[Any]],
    *,
    deadline_s: float = DEADLINE_S,
) -> Outputs:
    """As ``simulate``, for any number of inputs: an array (N, 1, ...) of each, in the graph's layout.

    HarnessError: no input, no sample, or other numbers of samples.
    """
    counts = [len(array) for array in inputs]
    if len(set(counts)) != 1 or counts[0] == 0:
        raise HarnessError(f"the simulator takes as many samples of each input, at least one; got {counts}")
    source, version = source_of(model), require_toolkit()
    require_loader(source.loader)
    key = content_key(source.identity, options, version)
    subject = f"RKNN-Toolkit2 {version}, simulating {options.target_platform},"
    end = time.monotonic() + deadline_s
    outputs: Outputs = []

    def run(folder: Path, also: Mapping[str, str]) -> None:
        request = {
            **build_request(folder, source, options),
            **arrays_request(folder, inputs),
            "task": "simulate",
            **also,
        }
        with told_if_slow(f"simulating {len(inputs[0])} samples for {options.target_platform}"):
            run_child(request, folder, subject, end - time.monotonic(), failed_log(f"simulate-{key}"))
        outputs.extend(read_outputs(folder))

    def make(folder: Path) -> Mapping[str, Path]:
        run(folder, {"rknn": str(folder / RKNN_FILE)})
        return kept_of_build(folder, options)

    # The simulator runs only what it has just built. A model that nobody has compiled yet is kept on the way.
    fetch(key, make, deadline_s)
    if not outputs:
        with temporary_folder("rknpu-simulate-") as folder:
            run(folder, {})
    return outputs


def simulation_of(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    inputs: Sequence[NDArray[Any]],
    *,
    deadline_s: float = DEADLINE_S,
) -> Simulation:
    """As ``simulate_inputs``; but what the simulator gave an earlier run for the same content is given again.

    The simulator is deterministic, so that a second run need not build and simulate anew. Who uses it notes
    ``stored`` in the record of the test. The same content is the model, the options, the inputs, the toolkit,
    the libraries that compute beside it, and the processor. Stored outputs are given once in a process: who
    asks again compares two simulations, and gets a second one.
    """
    source, version = source_of(model), require_toolkit()
    key = _simulation_key(source, options, inputs, version)
    there = None if key in _asked else find(key)
    _asked.add(key)
    if there is not None:
        origin = json.loads((there / _ORIGIN).read_text(encoding="utf-8"))
        return Simulation(
            _read(there / _ARRAYS),
            f"not simulated again: outputs that RKNN-Toolkit2 {version} gave on {origin['simulated']} "
            f"for the same model, options and inputs (entry {key[:12]} of the cache)",
        )
    outputs = simulate_inputs(source, options, inputs, deadline_s=deadline_s)
    if sum(output.nbytes for output in outputs) <= _LARGEST_STORED:
        _store(key, outputs)
    return Simulation(outputs)


def _store(key: str, outputs: Outputs) -> None:
    """Keeps them for a later run, unless the cache takes nothing: then that one simulates again."""

    def make(folder: Path) -> Mapping[str, Path]:
        np.savez(folder / _ARRAYS, *outputs)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        (folder / _ORIGIN).write_text(json.dumps({"simulated": now, "host": platform.node()}))
        return {_ARRAYS: folder / _ARRAYS, _ORIGIN: folder / _ORIGIN}

    try:
        fetch(key, make, DEADLINE_S)
    except ConfigurationError:
        return


def _read(path: Path) -> Outputs:
    with np.load(path, allow_pickle=False) as archive:
        return [archive[name] for name in archive.files]


def _simulation_key(
    source: ModelSource, options: CompileOptions, inputs: Sequence[NDArray[Any]], version: str
) -> str:
    digest = hashlib.sha256()
    parts = [content_key(source.identity, options, version), source.layout]
    # Libraries choose their loops by the processor's features, and share them out among its cores.
    parts += [platform.python_version(), *map(_version_of, _LIBRARIES), str(os.cpu_count()), *_processor()]
    for array in inputs:
        taken = np.ascontiguousarray(array, dtype=np.float32)  # as the simulator gets it
        parts += [str(taken.shape), hashlib.sha256(taken.tobytes()).hexdigest()]
    digest.update(json.dumps(["simulation", *parts]).encode())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _processor() -> tuple[str, ...]:
    lines: list[str] = []
    if Path("/proc/cpuinfo").exists():
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
        lines = [line for line in first.splitlines() if line.startswith(_OF_THE_PROCESSOR)]
    return (platform.machine(), *lines)


@lru_cache(maxsize=len(_LIBRARIES))
def _version_of(library: str) -> str:
    try:
        return f"{library} {metadata.version(library)}"
    except metadata.PackageNotFoundError:
        return f"no {library}"
