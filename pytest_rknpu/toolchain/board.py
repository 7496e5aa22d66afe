"""A connected board, driven by RKNN-Toolkit2 over adb and rknn_server; each call is a process of its own.

``init_runtime(target, device_id)`` is paid anew by each call (Toolkit2 API reference 2.7): what is to be
measured on one connection goes into one call. The bounds are generous for a board that works, and end one
that does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_rknpu.errors import ToolkitError
from pytest_rknpu.toolchain.cache import failed_log
from pytest_rknpu.toolchain.compile import arrays_request, build_request, read_outputs
from pytest_rknpu.toolchain.disk import temporary_folder
from pytest_rknpu.toolchain.layer_errors import LayerError, parse_layer_errors
from pytest_rknpu.toolchain.log_lines import clean_lines
from pytest_rknpu.toolchain.memory_report import MemoryUse, parse_memory
from pytest_rknpu.toolchain.options import CompileOptions, content_key
from pytest_rknpu.toolchain.performance_report import Performance, parse_performance
from pytest_rknpu.toolchain.process import BOARD_WORKER, LOG, run_child
from pytest_rknpu.toolchain.sdk_version import SdkVersions, parse_sdk_version
from pytest_rknpu.toolchain.source import ModelSource, require_loader, source_of
from pytest_rknpu.toolchain.status import require_toolkit

CONNECT_S = 90.0
"""To start adb and the runtime on the board."""
ANALYSIS_S = 600.0
_PER_SAMPLE_S = 10.0

Report = str | Mapping[str, Any]
Parsed = TypeVar("Parsed")
_BEGIN, _END = "rknpu-figures-begin", "rknpu-figures-end"  # child/board_worker.py prints them


@dataclass(frozen=True)
class Device:
    """What ``init_runtime`` takes: the toolkit's name of the SoC, and adb's of the board."""

    target: str
    device_id: str | None = None

    def keywords(self) -> dict[str, str]:
        """For ``init_runtime`` and ``accuracy_analysis``."""
        chosen = {} if self.device_id is None else {"device_id": self.device_id}
        return {"target": self.target, **chosen}

    def __str__(self) -> str:
        return f"{self.target}, {self.device_id or 'the only device'}"


@dataclass(frozen=True)
class Devices:
    """What ``list_devices`` shows."""

    adb: tuple[str, ...]
    ntb: tuple[str, ...]


def list_devices(*, deadline_s: float = CONNECT_S) -> Devices:
    """The devices connected to this host. adb's server is started where none runs, and stays, as adb has it.

    ChildFailed (a ToolkitError): adb does not start, or does not answer by the deadline.
    """
    version = require_toolkit()
    with temporary_folder("rknpu-devices-") as folder:
        request = {"task": "list_devices"}
        subject = f"RKNN-Toolkit2 {version}, looking for connected boards,"
        reply = run_child(request, folder, subject, deadline_s, failed_log("list-devices"), BOARD_WORKER)
    return Devices(tuple(reply["adb"]), tuple(reply["ntb"]))


def board_sdk_version(rknn: bytes, device: Device, *, deadline_s: float = CONNECT_S) -> SdkVersions:
    """The versions of API, rknn_server, runtime and driver. ChildFailed where the board is not reached."""
    return _reports(rknn, device, "get_sdk_version", {}, deadline_s, parse_sdk_version)[0]


def board_memory(rknn: bytes, device: Device, *, deadline_s: float = CONNECT_S) -> MemoryUse:
    """What the model takes on the board (``eval_mem``). ChildFailed where the board is not reached."""
    request = {"runtime": {"eval_mem": True}}
    return _reports(rknn, device, "eval_memory", request, deadline_s, parse_memory)[0]


def board_performance(
    rknn: bytes,
    device: Device,
    *,
    count: int = 1,
    per_layer: bool = False,
    fix_freq: bool = True,
    deadline_s: float | None = None,
) -> list[Performance]:
    """``count`` evaluations on one connection. ``per_layer`` (``perf_debug``) makes frames slower.

    ``fix_freq`` lets the toolkit raise the clocks of CPU, NPU and DDR, where they stay. ChildFailed where the
    board is not reached, or has no such figures (RV1103 and RV1106 have none per layer).
    """
    request = {"runtime": {"perf_debug": per_layer}, "count": count, "fix_freq": fix_freq}
    limit = CONNECT_S + _PER_SAMPLE_S * count if deadline_s is None else deadline_s
    return _reports(rknn, device, "eval_perf", request, limit, parse_performance)


def board_inference(
    rknn: bytes,
    device: Device,
    inputs: Sequence[NDArray[Any]],
    *,
    layout: str = "nchw",
    deadline_s: float | None = None,
) -> list[NDArray[np.float32]]:
    """Every sample on the board; ``inputs`` is an array (N, 1, ...) for each input, in ``layout``.

    Returns one float32 array (N, ...) per output. ChildFailed where the board is not reached.
    """
    limit = CONNECT_S + _PER_SAMPLE_S * len(inputs[0]) if deadline_s is None else deadline_s
    with temporary_folder("rknpu-board-") as folder:
        request = {**arrays_request(folder, inputs), "layout": layout}
        _run(folder, rknn, device, "infer_on_board", request, limit)
        return read_outputs(folder)


def analyse_layers(
    model: bytes | Path | ModelSource,
    options: CompileOptions,
    sample: Sequence[NDArray[Any]],
    device: Device | None = None,
    *,
    deadline_s: float = ANALYSIS_S,
) -> tuple[LayerError, ...]:
    """``accuracy_analysis`` of one sample, an array (1, ...) for each input: each layer against float.

    On the simulator, and with ``device`` on that board too. ChildFailed as elsewhere; the model is built
    anew.
    """
    source, version = source_of(model), require_toolkit()
    require_loader(source.loader)
    with temporary_folder("rknpu-layers-") as folder:
        files = [str(folder / f"analysed{number}.npy") for number in range(len(sample))]
        for file, array in zip(files, sample, strict=True):
            np.save(file, array.astype(np.float32))
        request = {
            **build_request(folder, source, options),
            "task": "accuracy_analysis",
            "analysed": files,
            "output_dir": str(folder / "snapshot"),
            "target": device.keywords() if device else {},
        }
        subject = f"RKNN-Toolkit2 {version}, analysing layers for {options.target_platform},"
        log = failed_log(f"layers-{content_key(source.identity, options, version)}")
        run_child(request, folder, subject, deadline_s, log, BOARD_WORKER)
        text = (folder / "snapshot" / "error_analysis.txt").read_text(encoding="utf-8")
    return parse_layer_errors(text)


def _reports(
    rknn: bytes,
    device: Device,
    task: str,
    request: Mapping[str, Any],
    deadline_s: float,
    parse: Callable[[Report], Parsed],
) -> list[Parsed]:
    """What the toolkit returned for each call, or printed during it where it returned nothing of use."""
    with temporary_folder("rknpu-board-") as folder:
        reply = _run(folder, rknn, device, task, request, deadline_s)
        printed = _printed((folder / LOG).read_text(encoding="utf-8", errors="replace"))
    if len(printed) != len(reply["reports"]):
        raise ToolkitError(f"{task}: {len(reply['reports'])} calls, but {len(printed)} reports in the log")
    return [_parsed(parse, value, text) for value, text in zip(reply["reports"], printed, strict=True)]


def _parsed(parse: Callable[[Report], Parsed], returned: Report | None, printed: str) -> Parsed:
    if returned is not None:
        try:
            return parse(returned)
        except ToolkitError as error:
            try:
                return parse(printed)
            except ToolkitError:
                raise error from None
    return parse(printed)


def _printed(log: str) -> list[str]:
    return ["\n".join(clean_lines(part.partition(_END)[0])) for part in log.split(_BEGIN)[1:]]


def _run(
    folder: Path, rknn: bytes, device: Device, task: str, request: Mapping[str, Any], deadline_s: float
) -> Mapping[str, Any]:
    version = require_toolkit()
    (folder / "model.rknn").write_bytes(rknn)
    full = {
        **request,
        "task": task,
        "rknn": str(folder / "model.rknn"),
        "runtime": {**device.keywords(), **request.get("runtime", {})},
    }
    subject = f"RKNN-Toolkit2 {version}, {task} on a connected board ({device}),"
    # One log for each board and model: those of others must not replace it while it is read.
    asked = hashlib.sha256(f"{device}".encode() + rknn).hexdigest()
    return run_child(full, folder, subject, deadline_s, failed_log(f"{task[:12]}-{asked}"), BOARD_WORKER)
