"""Drives a connected board through RKNN-Toolkit2 for one request: ``python board_worker.py request.json``.

As worker.py, whose neighbour it is on the import path: one process for each request, JSON in and out. What
the toolkit prints of its figures goes to the log between two marks, since some versions return them and some
only print them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_rknpu.toolchain.child.worker import StepFailed, Steps, build, infer, main, start
else:
    from worker import StepFailed, Steps, build, infer, main, start

# The parent cuts the log at these (pytest_rknpu.toolchain.board).
BEGIN, END = "rknpu-figures-begin", "rknpu-figures-end"


def list_devices(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    """The devices that adb, and the NTB of older boards, show."""
    toolkit = start(steps)
    adb, ntb = steps.run("list_devices", toolkit.list_devices)
    return {"adb": [str(device) for device in adb], "ntb": [str(device) for device in ntb]}


def infer_on_board(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    return _on_board(steps, request, lambda toolkit: {"samples": infer(steps, toolkit, request)})


def eval_perf(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    def repeatedly(toolkit: Any) -> dict[str, Any]:
        fix = {"fix_freq": request["fix_freq"]}
        return {
            "reports": [_figures(steps, "eval_perf", toolkit.eval_perf, fix) for _ in range(request["count"])]
        }

    return _on_board(steps, request, repeatedly)


def eval_memory(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    return _on_board(
        steps, request, lambda toolkit: {"reports": [_figures(steps, "eval_memory", toolkit.eval_memory, {})]}
    )


def get_sdk_version(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    def ask(toolkit: Any) -> dict[str, Any]:
        return {"reports": [_figures(steps, "get_sdk_version", lambda **_: toolkit.get_sdk_version(), {})]}

    return _on_board(steps, request, ask)


def accuracy_analysis(steps: Steps, request: dict[str, Any]) -> dict[str, Any]:
    """Needs the model built in this process; with a target it runs on the board too."""
    toolkit = build(steps, request)
    keywords = {"inputs": request["analysed"], "output_dir": request["output_dir"], **request["target"]}
    steps.succeed("accuracy_analysis", lambda: toolkit.accuracy_analysis(**keywords))
    return {}


def _on_board(steps: Steps, request: dict[str, Any], use: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Load the model, connect, use it, and let go of the board whatever happened."""
    toolkit = start(steps)
    try:
        steps.succeed("load_rknn", lambda: toolkit.load_rknn(request["rknn"]))
        steps.succeed("init_runtime", lambda: toolkit.init_runtime(**request["runtime"]))
        return use(toolkit)
    finally:
        toolkit.release()


def _figures(steps: Steps, step: str, call: Callable[..., Any], keywords: Mapping[str, Any]) -> Any:
    """What the call returned if it is a text or a dict; else None, and the log has what it printed."""
    print(f"\n{BEGIN}", flush=True)
    returned = steps.run(step, lambda: call(**keywords))
    sys.stdout.flush()
    print(f"\n{END}", flush=True)
    if isinstance(returned, int) and returned != 0:
        raise StepFailed(step, f"returned {returned!r}")
    return _plain(returned) if isinstance(returned, (str, Mapping)) else None


def _plain(value: Any) -> Any:
    """The value with numpy's scalars and foreign classes turned into what JSON takes."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.item() if hasattr(value, "item") else str(value)


TASKS = {
    task.__name__: task
    for task in (list_devices, infer_on_board, eval_perf, eval_memory, get_sdk_version, accuracy_analysis)
}

if __name__ == "__main__":
    main(lambda steps, request: TASKS[request["task"]](steps, request))
