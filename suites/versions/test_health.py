"""VER-05: the NPU is idle before, works without an error line, and the kernel has no complaint."""

from __future__ import annotations

import re

import pytest

from pytest_rknpu.errors import BoardError, ConformanceFailure
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import Npu, Program, ZeroCopy

KERNEL_ERROR = re.compile(r"rknpu.*(error|fail|timeout|soft reset|abort)|disabling irq", re.IGNORECASE)


@pytest.mark.requirement("VER-05")
def test_runs_leave_no_error(npu: Npu, effort: Effort) -> None:
    """Error lines of the runtime's log fail any test; this one also looks at NPU load and kernel log."""
    before = npu.session.probe()
    load = before["npu_load"].get("value")
    if load is not None:
        npu.record.measure("NPU load before", max(load), "%")
        if max(load) > 0:
            raise BoardError(
                f"board {npu.session.board.name}: the NPU is in use before the test (load {load} %); end "
                "the other program, its work would be judged too"
            )
    else:
        npu.record.note(f"NPU load unknown: {before['npu_load']}")
    model = npu.model("probe_chain")
    io = ZeroCopy("a", model)
    program = Program()
    io.open(program)
    with program.repeat(effort.rounds(50)):
        program.run(io.context)
    io.close(program)
    npu.execute(program)
    new = _new_kernel_errors(
        before["npu_kernel_log"].get("value"), npu.session.probe()["npu_kernel_log"].get("value")
    )
    if new is None:
        npu.record.note(f"kernel log unknown: {before['npu_kernel_log']}")
    elif new:
        raise ConformanceFailure(f"board {npu.session.board.name}: the kernel reports\n" + "\n".join(new))


def _new_kernel_errors(before: list[str] | None, after: list[str] | None) -> list[str] | None:
    """Kernel messages about NPU errors that were not there before; None where the log cannot be read."""
    if before is None or after is None:
        return None
    return [line for line in after if line not in before and KERNEL_ERROR.search(line)]
