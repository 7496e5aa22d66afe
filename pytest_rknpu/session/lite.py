"""RKNN-Toolkit-Lite2, the vendor's Python package, asked in a child process on a board."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pytest_rknpu.errors import ConformanceFailure, HarnessError
from pytest_rknpu.session.compatibility import release_in
from pytest_rknpu.session.runtime_log import explanation, versions_in

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import LoadedModel, Npu

Array = npt.NDArray[Any]
DataFormat = Literal["nhwc", "nchw"]

_API = re.compile(r"\bAPI\b[^\d\n]{0,60}(\d+\.\d+\.\d+)")
_CHILD_SECONDS = 120.0
_ANSWER_SECONDS = 20.0


@dataclass(frozen=True, eq=False)
class LiteCase:
    """One call of ``RKNNLite.inference``: arrays in the layout that ``data_format`` names.

    ``data_format`` None leaves the argument out; ``pass_through`` hands the bytes to the NPU as they are.
    """

    inputs: tuple[Array, ...]
    data_format: DataFormat | None = None
    pass_through: bool = False


@dataclass(frozen=True)
class LiteOutput:
    """One array of what ``inference`` returned: ``dtype`` by numpy's name, ``data`` in C order."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class LiteAnswer:
    """``outputs`` has, for each core mask, the arrays of each case; a text says why there are none.

    ``version`` is the package's, ``sdk_version`` what ``get_sdk_version`` returned, ``libraries`` the runtime
    libraries that the process had loaded; ``log`` is what package and runtime wrote.
    """

    version: str | None
    sdk_version: str | None
    libraries: tuple[str, ...]
    outputs: tuple[tuple[tuple[LiteOutput, ...] | str, ...], ...]
    log: str


def ask_lite(
    npu: Npu, model: LoadedModel, cases: Sequence[LiteCase], core_masks: Sequence[int] = (0,)
) -> LiteAnswer:
    """load_rknn, then for each core mask init_runtime and inference of every case; get_sdk_version, release.

    Raises ConformanceFailure, with its log, where the package crashes, hangs, or refuses the model or a mask.
    """
    reply = npu.session.request(
        {
            "request": "lite",
            "model": model.sha256,
            "core_masks": [int(mask) for mask in core_masks],
            "cases": [_plain(case) for case in cases],
            "deadline_s": _CHILD_SECONDS,
        },
        _CHILD_SECONDS + _ANSWER_SECONDS,
    )
    if not reply["ok"]:
        raise HarnessError(f"board {npu.session.board.name}: {reply['error']['message']}")
    child = reply["lite"]
    npu.heard(str(child["log"]))
    done = _require_done(npu, child)
    refused = [outputs for outputs in done["outputs"] if isinstance(outputs, str)]
    if refused:
        raise ConformanceFailure(f"{_who(npu)}: {'; '.join(refused)}{_said(child)}")
    return _answer(done, str(child["log"]))


def _plain(case: LiteCase) -> dict[str, Any]:
    inputs = [
        {
            "data": np.ascontiguousarray(array).tobytes(),
            "dtype": array.dtype.name,
            "shape": [int(size) for size in array.shape],
        }
        for array in case.inputs
    ]
    return {"inputs": inputs, "data_format": case.data_format, "pass_through": case.pass_through}


def _who(npu: Npu) -> str:
    return f"board {npu.session.board.name}: RKNN-Toolkit-Lite2"


def _said(child: Mapping[str, Any]) -> str:
    """The child's log, with what is known of it."""
    log = str(child["log"])
    known = explanation(log)
    meaning = f"\nwhat is known of that log: {known}" if known else ""
    return meaning + (f"\nits log:\n{log.rstrip()}" if log.strip() else "")


def _require_done(npu: Npu, child: Mapping[str, Any]) -> Mapping[str, Any]:
    if child["outcome"] == "done":
        reply: Mapping[str, Any] = child["reply"]
        return reply
    if child["outcome"] == "error":
        raise ConformanceFailure(f"{_who(npu)}: {child['reply']['error']['message']}{_said(child)}")
    if child["outcome"] == "timeout":
        raise ConformanceFailure(
            f"{_who(npu)} did not come to an end within {_CHILD_SECONDS:g} s{_said(child)}"
        )
    how = child["signal"] or f"exit code {child['exit']}"
    raise ConformanceFailure(f"{_who(npu)} ended its process ({how}){_said(child)}")


def _answer(reply: Mapping[str, Any], log: str) -> LiteAnswer:
    return LiteAnswer(
        version=reply["version"],
        sdk_version=reply["sdk_version"],
        libraries=tuple(reply["libraries"]),
        outputs=tuple(
            tuple(
                case if isinstance(case, str) else tuple(_output(entry) for entry in case) for case in cases
            )
            for cases in reply["outputs"]
        ),
        log=log,
    )


def _output(entry: Mapping[str, Any]) -> LiteOutput:
    return LiteOutput(str(entry["dtype"]), tuple(entry["shape"]), bytes(entry["data"]))


def why_another_runtime(answer: LiteAnswer, versions: Mapping[str, str]) -> str | None:
    """Why the package did not compute with the runtime that the C API was asked of; None where it did, or
    where nobody can tell.

    It looks for librknnrt.so by itself; a board may have two.
    """
    own, theirs = release_in(versions.get("runtime", "")), _release(answer)
    if own is None or theirs is None or own == theirs:
        return None
    loaded = f", loaded from {', '.join(answer.libraries)}" if answer.libraries else ""
    return (
        f"RKNN-Toolkit-Lite2 computes with runtime {'.'.join(map(str, theirs))}{loaded}, the C API with "
        f"{versions['runtime']} ({versions.get('runtime_library', 'unknown file')}); leave one librknnrt.so "
        "on the board, or name its in `library` of boards.toml"
    )


def _release(answer: LiteAnswer) -> tuple[int, ...] | None:
    """What its get_sdk_version says of the API, else what the runtime logged at its start."""
    said = answer.sdk_version or ""
    api = _API.search(said)
    for text in (api[1] if api else said, versions_in(answer.log).get("runtime", "")):
        found = release_in(text)
        if found is not None:
            return found
    return None
