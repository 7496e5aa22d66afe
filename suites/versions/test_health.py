"""VER-05: the NPU is idle before, works without an error line, and the kernel has no complaint."""

from __future__ import annotations

import pytest

from pytest_rknpu.errors import BoardError, ConformanceFailure, Inconclusive
from pytest_rknpu.fixtures import Effort
from pytest_rknpu.session import Npu, Program, ZeroCopy
from pytest_rknpu.session.kernel_log import new_complaints


@pytest.mark.requirement("VER-05")
def test_runs_leave_no_error(npu: Npu, effort: Effort) -> None:
    """Error lines of the runtime's log fail any test; this one also looks at NPU load and kernel log.

    Where these cannot be seen, nothing is known of idleness and kernel.
    """
    board, before = npu.session.board.name, npu.session.probe()
    load = before["npu_load"].get("value")
    if load is not None:
        npu.record.measure("NPU load before", max(load), "%")
        if max(load) > 0:
            raise BoardError(
                f"board {board}: the NPU is in use before the test (load {load} %); end the other program, "
                "its work would be judged too"
            )
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
