"""Judging what a child process on the board came to (the ``child`` command of docs/command-lists.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pytest_rknpu.agent.abi import rknn_error_code as ErrorCode
from pytest_rknpu.errors import ConformanceFailure, HarnessError

if TYPE_CHECKING:
    from pytest_rknpu.session.npu import Npu


def require_refused(npu: Npu, child: Mapping[str, Any], save: str, what: str) -> int:
    """The call saved as ``save`` gave an error code: no success, no crash, no hang. Returns the code.

    Raises ConformanceFailure otherwise, HarnessError where the child's own list was malformed.
    """
    code = int(require_survived(npu, child, what)[save])
    require_error(npu, code, what)
    return code


def require_error(npu: Npu, code: int, what: str) -> None:
    """``code`` is an error code; it is written down. Raises ConformanceFailure for RKNN_SUCC."""
    npu.record.measure("returned code", code_name(code))
    if code == ErrorCode.RKNN_SUCC:
        raise ConformanceFailure(f"board {npu.session.board.name}: {what} returned RKNN_SUCC, not an error")


def require_survived(npu: Npu, child: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The child ran its list to the end; returns its saved values."""
    board, outcome = npu.session.board.name, child["outcome"]
    if outcome == "died":
        how = child["signal"] or f"exit code {child['exit']}"
        raise ConformanceFailure(
            f"board {board}: {what} ended the process ({how}), no error code\n{child['log']}"
        )
    if outcome == "timeout":
        raise ConformanceFailure(f"board {board}: {what} did not return\n{child['log']}")
    reply = child["reply"]
    if outcome == "error" or not reply["ok"]:
        error = reply["error"]
        kind = ConformanceFailure if error["kind"] in ("rknn", "null") else HarnessError
        raise kind(
            f"board {board}: {what}: the child stopped at command {error.get('at')}: {error['message']}"
        )
    values: dict[str, Any] = reply["values"]
    return values


def logs_of(values: Mapping[str, Any]) -> Iterator[str]:
    """What the runtime logged in the child processes among the saved ``values`` of a program."""
    for value in values.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and one.keys() >= {"outcome", "reply", "log"}:
                yield str(one["log"])


def code_name(code: int) -> str:
    """The header's name of a return code, or the number where the header has none."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
