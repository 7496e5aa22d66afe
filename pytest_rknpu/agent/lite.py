"""RKNN-Toolkit-Lite2 on the board, in a child process of the agent (docs/command-lists.md, ``lite``).

The package and numpy, which it needs, are imported in the child only: the agent goes on without either. It
finds its runtime library by itself, so the child says which one it has loaded.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

from .failures import Failure, ProgramFailure, as_failure
from .fields import Blobs
from .readers import Absent, Blocked, Root

PACKAGE = "rknn-toolkit-lite2"
MODULE = "rknnlite"
DTYPES = ("int8", "uint8", "int16", "float16", "float32")
DATA_FORMATS = ("nhwc", "nchw")
MAXIMUM_CASES = 4096
_DISTRIBUTION = re.compile(r"rknn_toolkit_lite2-(\d[^-]{0,40})\.(?:dist|egg)-info")
_PARENTS = ("usr/lib", "usr/local/lib", "root/.local/lib")
_HOMES = ("home", "opt")
_LIBRARY = re.compile(r"(/\S{1,4000}/librknn[^/\s]{0,200}\.so\S{0,20})$", re.MULTILINE)


class LiteFailure(Failure):
    """RKNN-Toolkit-Lite2 did not do what was asked; its own words are in the log."""

    kind = "lite"


def installed_version(root: Root) -> str:
    """The version of RKNN-Toolkit-Lite2 that the agent's Python would import.

    Raises ``Absent``, with where another Python of this board has it.
    """
    if not root.is_live:
        folder = _below(root)
        if folder is None:
            raise Absent("the board is software, and has none of its own")
        return folder[1]
    from importlib import metadata

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        pass
    other = _below(root)
    elsewhere = f"; it is in /{other[0]}: set `python` in boards.toml to that Python" if other else ""
    raise Absent(f"{PACKAGE} is not installed for {sys.executable}{elsewhere}")


def _below(root: Root) -> tuple[str, str] | None:
    """The first folder of Python packages below the root that holds it, and its version."""
    for folder in _package_folders(root):
        for name in _names(root, folder, "rknn_toolkit_lite2-*"):
            found = _DISTRIBUTION.fullmatch(name)
            if found is not None:
                return folder, found[1]
    return None


def _package_folders(root: Root) -> list[str]:
    """Where Pythons of this board keep packages: the system's, users' own, virtual environments in homes."""
    parents = list(_PARENTS)
    for home in _HOMES:
        for name in _names(root, home, "*"):
            parents += [f"{home}/{name}/.local/lib", f"{home}/{name}/lib"]
            parents += [f"{home}/{name}/{inner}/lib" for inner in _names(root, f"{home}/{name}", "*env*")]
    return [
        f"{parent}/{python}/{kind}"
        for parent in parents
        for python in _names(root, parent, "python3", "python3.*")
        for kind in ("dist-packages", "site-packages")
    ]


def _names(root: Root, folder: str, *patterns: str) -> list[str]:
    try:
        return root.names(folder, *patterns)
    except (Absent, Blocked):
        return []


def check_cases(value: Any, blobs: Blobs) -> list[dict[str, Any]]:
    """The ``cases`` of a request, checked; raises ``ProgramFailure``."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAXIMUM_CASES:
        raise ProgramFailure(f"expected a list of 1 to {MAXIMUM_CASES} cases")
    return [_check_case(entry, f"case {number}") for number, entry in enumerate(value)]


def _check_case(case: Any, where: str) -> dict[str, Any]:
    if not isinstance(case, dict) or set(case) != {"inputs", "data_format", "pass_through"}:
        raise ProgramFailure(f"{where}: has the keys inputs, data_format, pass_through")
    if case["data_format"] not in (None, *DATA_FORMATS):
        raise ProgramFailure(f"{where}: data_format is None or one of {', '.join(DATA_FORMATS)}")
    if not isinstance(case["pass_through"], bool) or not isinstance(case["inputs"], list):
        raise ProgramFailure(f"{where}: pass_through is a bool, inputs a list")
    for number, entry in enumerate(case["inputs"]):
        _check_input(entry, f"{where}, input {number}")
    return case


def _check_input(entry: Any, where: str) -> None:
    if not isinstance(entry, dict) or set(entry) != {"data", "dtype", "shape"}:
        raise ProgramFailure(f"{where}: has the keys data, dtype, shape")
    if entry["dtype"] not in DTYPES or not isinstance(entry["data"], bytes):
        raise ProgramFailure(f"{where}: dtype is one of {', '.join(DTYPES)}, data are bytes")
    shape = entry["shape"]
    if not isinstance(shape, list) or not all(type(size) is int and size > 0 for size in shape):
        raise ProgramFailure(f"{where}: shape is a list of positive integers")


def child_request(
    root: Root, model_path: str, core_masks: list[int], cases: list[dict[str, Any]]
) -> dict[str, Any]:
    """What the child needs to know; ``children.run_child`` hands it over."""
    installed_version(root)  # Absent says where it is instead
    found = None if root.is_live else _below(root)
    return {
        "lite": {
            "path": [] if found is None else [root.path(found[0])],
            "model": model_path,
            "core_masks": core_masks,
            "cases": cases,
        }
    }


def work(request: dict[str, Any]) -> dict[str, Any]:
    """The child's side: infer every case with every core mask, and tell ``outputs`` as plain data: for each
    mask a list with a list of arrays for each case; a text in the place of either says why there is none.

    Beside them ``version`` (of the package), ``sdk_version`` (its own words) and ``libraries`` (the runtime
    libraries that this process has loaded).
    """
    sys.path[:0] = request["path"]
    try:
        return {"ok": True, **_infer(request)}
    except Failure as error:
        return {"ok": False, "error": error.as_reply()}
    except ImportError as error:
        failure = LiteFailure(f"import {MODULE}: {error}; install {PACKAGE} for {sys.executable} with pip")
        return {"ok": False, "error": failure.as_reply()}
    except Exception as error:
        return {"ok": False, "error": as_failure(error).as_reply()}


def _infer(request: dict[str, Any]) -> dict[str, Any]:
    numpy = importlib.import_module("numpy")
    lite = importlib.import_module(f"{MODULE}.api").RKNNLite()
    sdk_version = None
    outputs: list[Any] = []
    try:
        code = lite.load_rknn(request["model"])
        if code != 0:
            raise LiteFailure(f"RKNNLite.load_rknn returned {code}")
        for mask in request["core_masks"]:
            code = lite.init_runtime(core_mask=mask)  # releases what it initialised before
            if code != 0:
                outputs.append(f"RKNNLite.init_runtime(core_mask={mask}) returned {code}")
                continue
            sdk_version = lite.get_sdk_version()
            outputs.append([_run(lite, case, numpy) for case in request["cases"]])
        libraries = loaded_libraries()
    finally:
        lite.release()
    return {
        "version": _version(),
        "sdk_version": None if sdk_version is None else str(sdk_version),
        "libraries": libraries,
        "outputs": outputs,
    }


def _run(lite: Any, case: dict[str, Any], numpy: Any) -> list[dict[str, Any]] | str:
    inputs = [
        numpy.frombuffer(entry["data"], numpy.dtype(entry["dtype"])).reshape(entry["shape"])
        for entry in case["inputs"]
    ]
    keywords: dict[str, Any] = {}
    if case["data_format"] is not None:
        keywords["data_format"] = case["data_format"]
    if case["pass_through"]:
        keywords["inputs_pass_through"] = [1] * len(inputs)
    try:
        answer = lite.inference(inputs=inputs, **keywords)
    except Exception as error:
        return f"RKNNLite.inference raised {type(error).__name__}: {error}"
    if answer is None:
        return "RKNNLite.inference returned None"
    return [
        {"dtype": str(array.dtype), "shape": [int(size) for size in array.shape], "data": array.tobytes()}
        for array in map(numpy.asarray, answer)
    ]


def _version() -> str | None:
    from importlib import metadata

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return None


def loaded_libraries() -> list[str]:
    """The runtime libraries that this process has mapped, sorted."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        return sorted({os.path.realpath(found) for found in _LIBRARY.findall(file.read())})
