"""ERR-05: a core mask that the SoC has not is refused, or the runtime says which cores it takes instead."""

from __future__ import annotations

import re

import pytest

from pytest_rknpu.agent.abi import rknn_core_mask
from pytest_rknpu.errors import ConformanceFailure
from pytest_rknpu.session import Npu, Program, ZeroCopy, code_name, require_survived

# Names of the header that some SoCs lack, and a bit that no SoC has.
MASKS = {
    "CORE_0": int(rknn_core_mask.RKNN_NPU_CORE_0),
    "CORE_1": int(rknn_core_mask.RKNN_NPU_CORE_1),
    "CORE_2": int(rknn_core_mask.RKNN_NPU_CORE_2),
    "CORE_0_1_2": int(rknn_core_mask.RKNN_NPU_CORE_0_1_2),
    "bit-5": 1 << 5,
}
# "Not support core mask: 3, fallback to single core auto mode", as seen on silicon.
FALL_BACK = re.compile(
    r"core mask.*(fall ?back|not support)|(fall ?back|not support).*core mask", re.IGNORECASE
)


@pytest.mark.requirement("ERR-05")
@pytest.mark.expects_runtime_errors
@pytest.mark.parametrize("mask", list(MASKS))
def test_unsupported_core_mask(npu: Npu, mask: str) -> None:
    """rknn_set_core_mask then a run, in a child: an error code, or a line that names the fall-back."""
    if "rknn_set_core_mask" not in npu.session.functions:
        npu.skip_missing("rknn_set_core_mask")
    if MASKS[mask] in {int(rknn_core_mask[name]) for name in npu.core_masks}:
        pytest.skip(f"{npu.soc.name} has the core mask {mask}: there is nothing to refuse")
    model = npu.model("probe_pointwise")
    data = npu.random_inputs(model, 1)[0]
    io = ZeroCopy("a", model)
    program = Program()
    with program.child("child"):
        io.open(program)
        program.set_core_mask(io.context, MASKS[mask], expect="any", save="code")
        program.write(io.input, data)
        program.run(io.context, expect="any", save="ran")
        io.compare_output(program, [npu.reference(model, [data])[0]], "output")
    child = npu.execute(program)["child"]
    what = f"rknn_set_core_mask({MASKS[mask]:#x}) on {npu.soc.name}"
    values = require_survived(npu, child, what)
    npu.record.measure("returned code", code_name(values["code"]))
    if values["code"] == 0:
        _require_named(npu, str(child["log"]), what)
    if values["ran"] == 0:
        npu.require_same(values["output"], f"the run after {what}")
    npu.require_health()


def _require_named(npu: Npu, log: str, what: str) -> None:
    named = next((line for line in log.splitlines() if FALL_BACK.search(line)), None)
    if named is None:
        raise ConformanceFailure(
            f"board {npu.session.board.name}: {what} returned RKNN_SUCC, and the runtime does not say which "
            "cores it takes instead"
        )
    npu.record.note(f"{what} returned RKNN_SUCC and falls back aloud: {named.strip()}")
