"""VER-05: the NPU is idle and well before, works without an error line, and the kernel has no complaint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_rknpu.errors import BoardError, ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import Npu, Program, ZeroCopy
from pytest_rknpu.session.kernel_log import new_complaints

# The driver counts its load over a second: what the test before this one did has to fade away.
SETTLING_S = 4.0
PERIOD_S = 0.5

Facts = Mapping[str, Mapping[str, Any]]


@pytest.mark.requirement("VER-05")
def test_runs_leave_no_error(npu: Npu, effort: Effort) -> None:
    """Error lines of the runtime's log fail any test; this one also looks at NPU load and kernel log.

    Where these cannot be seen, nothing is known of idleness and kernel.
    """
    board = npu.session.board.name
    before = idle(npu)
    npu.require_health()
    io = ZeroCopy("a", npu.model("probe_chain"))
    program = Program()
    io.open(program)
    with program.repeat(effort.rounds(50)):
        program.run(io.context)
    io.close(program)
    npu.execute(program)
    after = npu.session.probe()
    logs = [facts["npu_kernel_log"].get("value") for facts in (before, after)]
    new = new_complaints(*logs) if None not in logs else []
    if new:
        raise ConformanceFailure(f"board {board}: the kernel reports\n" + "\n".join(new))
    unknown = {name: after[name] for name in ("npu_load", "npu_kernel_log") if "value" not in after[name]}
    if unknown:
        raise Inconclusive(f"board {board}: the runtime logged no error, but {unknown}; log in as root")


def idle(npu: Npu) -> Facts:
    """The facts of a board whose NPU does nothing; BoardError names who uses it."""
    ends = time.monotonic() + SETTLING_S
    facts = npu.session.probe()
    while _busy(facts) and time.monotonic() < ends:
        time.sleep(PERIOD_S)
        facts = npu.session.probe()
    load = facts["npu_load"].get("value")
    others = ", ".join(f"{user['name']} ({user['pid']})" for user in facts["npu_users"].get("value", []))
    if others:
        npu.record.note(f"other programs have the NPU open: {others}")
    if load is not None:
        npu.record.measure("NPU load before", max(load), "%")
    if _busy(facts):
        raise BoardError(
            f"board {npu.session.board.name}: the NPU is in use before the test (load {load} %"
            f"{f'; open in {others}' if others else ''}); end the other program, its work would be judged too"
        )
    return facts


def _busy(facts: Facts) -> bool:
    return max(facts["npu_load"].get("value", [0])) > 0
