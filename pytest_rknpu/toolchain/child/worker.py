"""Drives RKNN-Toolkit2 for one request, in a process of its own: ``python worker.py request.json``.

The toolkit replaces the root logger, prints progress from C code, writes into the working directory and may
end its process without a word, so nothing of this package runs beside it. The request is JSON; so is the
reply, which is written last: no reply file means that the process died. The steps, and what the toolkit
returned, are in the reply.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pytest_rknpu.toolchain.child.ending import ending
else:
    from ending import ending

_LARGEST_FILE, _PR_SET_PDEATHSIG = 1 << 32, 1


class StepFailed(Exception):
    """A call of the toolkit that neither raised nor succeeded."""

    def __init__(self, step: str, message: str) -> None:
        super().__init__(message)
        self.step = step


class Steps:
    """Runs the toolkit's calls in turn, remembers which one is running and how long they took in all."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker
        self.step = ""
        self.seconds = self.processor_seconds = 0.0

    def run(self, step: str, call: Callable[[], Any]) -> Any:
        if step != self.step:
            # On disk before the call: after an abort only this says how far it came.
            self.marker.write_text(step, encoding="utf-8")
            self.step = step
        started, used = time.perf_counter(), time.process_time()
        try:
            return call()
        finally:
            self.seconds += time.perf_counter() - started
            self.processor_seconds += time.process_time() - used

    def succeed(self, step: str, call: Callable[[], Any]) -> None:
        returned = self.run(step, call)
        if returned not in (0, None):
            raise StepFailed(step, f"returned {returned!r}")


def start(steps: Steps) -> Any:
    def create() -> Any:
        from rknn.api import RKNN

        return RKNN(verbose=True)

    return steps.run("import", create)


def build(steps: Steps, request: dict[str, Any]) -> Any:
    toolkit = start(steps)
    steps.succeed("config", lambda: toolkit.config(**request["config"]))
    load = request["load"]
    steps.succeed(load["method"], lambda: getattr(toolkit, load["method"])(**load["keywords"]))
    steps.succeed("build", lambda: toolkit.build(**request["build"]))
    return toolkit


def simulate(steps: Steps, toolkit: Any, request: dict[str, Any]) -> int:
    steps.succeed("init_runtime", toolkit.init_runtime)
    return infer(steps, toolkit, request)


def infer(steps: Steps, toolkit: Any, request: dict[str, Any]) -> int:
    """Runs every sample and saves each output, stacked along the batch; returns the number of samples."""
    with np.load(request["inputs"], allow_pickle=False) as archive:
        inputs = [archive[name] for name in archive.files]
    samples = len(inputs[0])
    results: list[list[Any]] = []
    for number in range(samples):
        sample = [array[number] for array in inputs]
        # The toolkit takes the word for inputs of other dimensions too, and heeds it for four.
        four = any(array.ndim == 4 for array in sample)
        formats = {"data_format": [request["layout"]] * len(sample)} if four else {}
        outputs = steps.run("inference", lambda: toolkit.inference(inputs=sample, **formats))  # noqa: B023
        if outputs is None:
            raise StepFailed("inference", f"returned None for sample {number}")
        results.append([np.asarray(output) for output in outputs])
    stacked = {f"output{i:03}": np.concatenate([r[i] for r in results]) for i in range(len(results[0]))}
    np.savez(request["outputs"], **stacked)
    return samples


def compile_or_simulate(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    toolkit = build(steps, request)
    if request.get("rknn"):
        steps.succeed("export_rknn", lambda: toolkit.export_rknn(request["rknn"]))
    return {"samples": simulate(steps, toolkit, request)} if request["task"] == "simulate" else {}


Task = Callable[[Steps, dict[str, Any]], dict[str, Any]]


def answer(request: dict[str, Any], task: Task) -> dict[str, Any]:
    steps = Steps(Path(request["marker"]))
    try:
        told = task(steps, request)
        return {"ok": True, **told, "toolkit_s": steps.seconds, "processor_s": steps.processor_seconds}
    except StepFailed as failure:
        return {"ok": False, "step": failure.step, "message": str(failure)}
    except Exception as error:
        # The toolkit puts a whole traceback into the text of its ValueErrors; its last line is the reason.
        traceback.print_exc()
        return {"ok": False, "step": steps.step or "start", "message": f"{type(error).__name__}: {error}"}


def bound() -> None:
    """An endless log ends here, and the process with whoever started it, should that be killed.

    No model comes near the largest file: an NPU addresses no more.
    """
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE if hard < 0 else min(hard, _LARGEST_FILE), hard))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def main(task: Task) -> None:
    bound()
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    reply = json.dumps(answer(request, task))
    unfinished = Path(request["reply"] + ".unfinished")
    unfinished.write_text(reply, encoding="utf-8")
    os.replace(unfinished, request["reply"])


if __name__ == "__main__":
    main(compile_or_simulate)
    ending.now()
